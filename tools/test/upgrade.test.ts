import { execFileSync } from 'node:child_process'

import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { expect, test } from 'vitest'

import { upgrade, upgradeFaults } from '../cluster/upgrade.ts'

/** The last commit whose nodes know nothing of the calls of official A2A clients. */
const BEFORE_OFFICIAL_CALLS = '449feed'

/** Returns the commit if this clone has it, else the current one. */
function commitToUpgrade(): string {
  try {
    execFileSync('git', ['cat-file', '-e', `${BEFORE_OFFICIAL_CALLS}^{commit}`], { stdio: 'ignore' })
    return BEFORE_OFFICIAL_CALLS
  } catch {
    return 'HEAD'
  }
}

test.skipIf(NATS_SERVER === undefined)(
  'upgrade - nodes are replaced by those of another version, and no call and no stream is lost in silence',
  { timeout: 120_000 },
  async () => {
    const report = await upgrade({ from: commitToUpgrade(), log: () => {} })
    expect(upgradeFaults(report)).toEqual([])
    expect(report.streamEnds).toMatchObject({
      'dialect at an old node that stopped': 'error -32603',
      'official stream at a new node that stopped': 'error -32603',
    })
  },
)
