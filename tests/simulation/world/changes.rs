//! What changes around the calls: time, plans and nodes.

use model::Plan;
use operations::admin;
use testkit::Engine;

use super::{World, tell};

impl World {
    pub(super) async fn rest(&mut self) {
        let seconds = self.rng.pick(&[1, 20, 61, 661, 25 * 3600, 9 * 86_400, 32 * 86_400]);
        // What a server put off is tried for two days only.
        if seconds > 86_400 {
            for _ in 0..3 {
                self.stage.clock.advance(1800);
                let node = self.any_node();
                self.work_on(node).await;
                if self.is_dead(node) {
                    return;
                }
            }
        }
        tell(format!("rest for {seconds} s"));
        self.stage.clock.advance(seconds);
        for node in self.nodes.iter().filter(|node| !node.frozen) {
            let (app, settles, forgets) = (node.app(), self.rng.once_in(2), self.rng.once_in(2));
            node.run(async move {
                if settles {
                    app.meter().commit().await;
                }
                if forgets {
                    app.meter().forget_idle().await;
                }
            })
            .await;
        }
    }

    pub(super) fn set_clock_back(&mut self) {
        let seconds = self.rng.pick(&[1, 30, 70]);
        // Which month a pool is in that nobody has used yet is open.
        if self.now().plus_seconds(-seconds).month_start() != self.now().month_start() {
            return;
        }
        tell(format!("the clock is set back by {seconds} s"));
        self.stage.clock.advance(-seconds);
        let now = self.now();
        self.tenants.iter_mut().for_each(|tenant| tenant.books.clock_was_set_back(now));
    }

    pub(super) async fn change_plan(&mut self) {
        let (tenant, node) = (self.rng.below(self.tenants.len()), self.any_node());
        let plan = self.rng.pick(&[Plan::Free, Plan::Developer, Plan::Enterprise]);
        tell(format!("tenant {tenant} moves to {plan:?}"));
        let workspace = self.tenants[tenant].workspace.clone();
        let app = self.nodes[node].app();
        let moved = self.nodes[node]
            .run(async move { admin::set_plan(&app, workspace, plan, &testkit::operator()).await })
            .await;
        if let Err(error) = moved {
            assert!(self.is_dead(node), "{error}");
            // Moved again by the next process, so that both agree.
            self.bury(self.mail.handed()).await;
            let (node, workspace) = (self.nodes.last().unwrap(), self.tenants[tenant].workspace.clone());
            let app = node.app();
            node.run(
                async move { admin::set_plan(&app, workspace, plan, &testkit::operator()).await.unwrap() },
            )
            .await;
        }
        self.tenants[tenant].books.change_plan(plan);
        if self.nodes.len() > 1 {
            // Other nodes remember who calls for half a second.
            tokio::time::sleep(std::time::Duration::from_millis(550)).await;
        }
    }

    /// Nodes come, go, are killed, freeze and wake up.
    pub(super) async fn change_nodes(&mut self) {
        let node = self.any_node();
        let sole = self.engine == Engine::Sqlite;
        let live = self.nodes.iter().filter(|node| !node.frozen).count();
        match self.rng.below(if sole { 2 } else { 5 }) {
            0 => {
                tell(format!("node {node} is killed"));
                self.kill_node(node).await;
                self.start_node().await;
            }
            1 => {
                tell(format!("node {node} is restarted"));
                let app = self.nodes[node].app();
                self.nodes[node].run(async move { app.meter().close().await }).await;
                self.kill_node(node).await;
                self.start_node().await;
            }
            2 if self.nodes.len() < 3 => {
                tell("a node comes".to_owned());
                self.start_node().await;
            }
            3 if live > 1 => {
                tell(format!("node {node} freezes"));
                self.nodes[node].frozen = true;
            }
            _ => {
                tell("all nodes wake up".to_owned());
                self.nodes.iter_mut().for_each(|node| node.frozen = false);
            }
        }
        let frozen = i64::try_from(self.nodes.iter().filter(|node| node.frozen).count()).unwrap();
        for tenant in &mut self.tenants {
            tenant.books.frozen_nodes = frozen;
        }
    }
}
