import { relative } from 'node:path'

import type { TestSpecification } from 'vitest/node'
import { BaseSequencer } from 'vitest/node'

/** The files that take longest, in seconds on two idle cores: a clean checkout has no record of earlier runs. */
const SECONDS: Readonly<Record<string, number>> = {
  'packages/engine-nats/test/leases.test.ts': 54,
  'apps/server/test/console-sign-in.test.ts': 15,
  'tools/test/pages.test.ts': 44,
  'tools/test/cluster.test.ts': 42,
  'packages/client/test/restart.test.ts': 41,
  'packages/engine-nats/test/cluster.test.ts': 36,
  'tools/test/snippets.test.ts': 34,
  'tools/test/load.test.ts': 33,
  'packages/engine-nats/test/queues.test.ts': 25,
  'packages/engine-nats/test/connection-loss.test.ts': 25,
  'packages/engine-nats/test/housekeeping.test.ts': 25,
  'packages/engine-nats/test/nodes.test.ts': 24,
  'packages/engine-embedded/test/disk-failure.test.ts': 23,
  'packages/console/test/shell.test.ts': 22,
  'apps/server/test/official-a2a/wrong-streams.test.ts': 22,
  'tools/test/attack.test.ts': 20,
  'apps/server/test/official-a2a/matrix.test.ts': 18,
  'packages/registry/test/liveness.test.ts': 18,
  'apps/server/test/cluster-tasks.test.ts': 17,
  'apps/server/test/agent-probes.test.ts': 17,
  'packages/engine-nats/test/server-features.test.ts': 17,
  'tools/test/readme.test.ts': 17,
  'apps/server/test/cluster-crash.test.ts': 16,
  'apps/server/test/lifecycle.test.ts': 16,
  'tools/test/crash.test.ts': 23,
  'apps/server/test/demo.test.ts': 16,
  'tools/test/fuzz.test.ts': 15,
  'packages/management-api/test/monitor.test.ts': 14,
  'apps/server/test/queue-metrics.test.ts': 13,
  'packages/engine-embedded/test/contract.test.ts': 13,
  'packages/engine-nats/test/contract.test.ts': 13,
  'apps/server/test/cli.test.ts': 13,
  'apps/server/test/replicas/replicas.test.ts': 13,
  'apps/server/test/front-door.test.ts': 12,
  'apps/server/test/cluster-agents.test.ts': 12,
  'apps/server/test/cluster-freeze.test.ts': 12,
  'packages/connector-a2a/test/wire/oracle.test.ts': 12,
  'apps/server/test/cluster-limits.test.ts': 11,
  'packages/connector-cloudevents/test/subscribe-store.test.ts': 11,
  'apps/server/test/official-mcp.test.ts': 11,
  'apps/server/test/cluster-console.test.ts': 11,
  'apps/server/test/browser.test.ts': 11,
}

/** Starts the longest files of each group first, so that none runs alone at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => group(a) - group(b) || seconds(b) - seconds(a))
  }
}

function group({ project }: TestSpecification): number {
  return project.config.sequence.groupOrder
}

function seconds(file: TestSpecification): number {
  return SECONDS[relative(file.project.vitest.config.root, file.moduleId)] ?? 0
}
