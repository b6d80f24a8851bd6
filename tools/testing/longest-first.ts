import { relative } from 'node:path'

import type { TestSpecification } from 'vitest/node'
import { BaseSequencer } from 'vitest/node'

/** The files that take longest, in seconds on two idle cores: a clean checkout has no record of earlier runs. */
const SECONDS: Readonly<Record<string, number>> = {
  'tools/test/cluster.test.ts': 40,
  'packages/engine-nats/test/cluster.test.ts': 31,
  'tools/test/snippets.test.ts': 29,
  'apps/server/test/lifecycle.test.ts': 25,
  'apps/server/test/official-a2a/matrix.test.ts': 24,
  'packages/engine-nats/test/queues.test.ts': 23,
  'apps/server/test/official-a2a/wrong-streams.test.ts': 22,
  'packages/engine-nats/test/housekeeping.test.ts': 21,
  'packages/engine-nats/test/nodes.test.ts': 20,
  'apps/server/test/official-a2a/nodes.test.ts': 20,
  'tools/test/readme.test.ts': 19,
  'packages/engine-nats/test/connection-loss.test.ts': 17,
  'tools/test/fuzz.test.ts': 17,
  'packages/engine-embedded/test/contract.test.ts': 16,
  'tools/test/crash.test.ts': 15,
  'packages/client/test/restart.test.ts': 14,
}

/**
 * Starts the longest files first, so that none runs alone at the end. Files that share workers come last, one package after the
 * other: a worker is kept only for the next file of its package.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => Number(isShared(a)) - Number(isShared(b)) || seconds(b) - seconds(a))
  }
}

function isShared({ project }: TestSpecification): boolean {
  return !project.config.isolate
}

function seconds(file: TestSpecification): number {
  if (isShared(file)) return 0
  return SECONDS[relative(file.project.vitest.config.root, file.moduleId)] ?? 0
}
