-- Several workspaces may claim a domain that nobody has proven; the first proof wins, and the other claims end. Addresses on
-- custom domains belong to whoever has proven the domain, so the table of addresses holds those of this server's own
-- domains only.
CREATE TABLE domain_claim_each (
    domain TEXT NOT NULL,
    owner_workspace TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    -- Since when the domain is proven to be this workspace's.
    proven_at BIGINT,
    -- When another workspace proved the domain to be its own. That is for good: this workspace would have to begin again.
    ended_at BIGINT,
    PRIMARY KEY (domain, owner_workspace)
); -- clustered

INSERT INTO domain_claim_each (domain, owner_workspace, proven_at, ended_at)
    SELECT d.domain, d.workspace_id,
        CASE WHEN c.owner_workspace = d.workspace_id AND d.status = 'verified' THEN coalesce(d.verified_at, d.updated_at) END,
        (SELECT coalesce(o.verified_at, o.updated_at) FROM email_domain o WHERE o.workspace_id = c.owner_workspace
            AND o.domain = d.domain AND o.status = 'verified' AND o.workspace_id <> d.workspace_id)
    FROM email_domain d LEFT JOIN domain_claim c ON c.domain = d.domain;
-- Only the holder of a claim could be verified; should a row say otherwise, it is not believed.
UPDATE email_domain SET status = 'failed', verified_at = NULL, failing_since = NULL
    WHERE status = 'verified' AND NOT EXISTS (SELECT 1 FROM domain_claim_each c
        WHERE c.owner_workspace = email_domain.workspace_id AND c.domain = email_domain.domain AND c.proven_at IS NOT NULL);

DROP TABLE domain_claim;
ALTER TABLE domain_claim_each RENAME TO domain_claim;
CREATE UNIQUE INDEX domain_claim_proven ON domain_claim (domain) WHERE proven_at IS NOT NULL;
CREATE INDEX domain_claim_owner ON domain_claim (owner_workspace);

DELETE FROM address WHERE EXISTS (SELECT 1 FROM email_domain d
    WHERE d.workspace_id = address.owner_workspace AND address.address LIKE '%@' || d.domain);
