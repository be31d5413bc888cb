//! Folders of a mailbox.

use model::Plan;
use serde_json::json;
use testkit::{Server, both_engines};

#[tokio::test]
async fn a_folder_lives_and_dies() {
    both_engines(async |engine| {
        let server = Server::start(engine).await;
        let tenant = server.tenant(Plan::Free).await;
        let mailbox = tenant.key.post("/api/v1/mailboxes", json!({ "name": "Inbox" })).await.ok();
        let folders = format!("/api/v1/mailboxes/{}/folders", mailbox["public_id"].as_str().unwrap());

        let created = tenant.key.post(&folders, json!({ "name": "To do" })).await;
        assert_eq!(created.status, 201);
        assert_eq!(
            created.json(),
            json!({ "id": "to-do", "name": "To do", "unreadCount": 0, "totalCount": 0, "system": false })
        );
        tenant.key.post(&folders, json!({ "name": "to DO!" })).await.expect(409, "folder_exists");
        tenant.key.post(&folders, json!({ "name": "!!" })).await.expect(400, "validation_failed");

        let one = format!("{folders}/to-do");
        assert_eq!(tenant.key.put(&one, json!({ "name": "Done" })).await.ok()["name"], "Done");
        assert_eq!(tenant.key.delete(&one).await.status, 204);
        tenant.key.delete(&one).await.expect(404, "not_found");
        tenant.key.delete(&format!("{folders}/inbox")).await.expect(400, "folder_protected");
        let left = tenant.key.get(&folders).await.ok();
        assert_eq!(left.as_array().unwrap().len(), 7);
    })
    .await;
}
