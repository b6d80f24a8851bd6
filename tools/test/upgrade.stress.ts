import { execFileSync } from 'node:child_process'

import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { expect, test } from 'vitest'

import { upgrade, upgradeFaults } from '../cluster/upgrade.ts'

/** The last commit whose nodes know nothing of the calls of official A2A clients. */
const BEFORE_OFFICIAL_CALLS = '449feed'

function hasCommit(commit: string): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${commit}^{commit}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

// A shallow clone has only the current commit, and an unpacked archive has none.
const from = [BEFORE_OFFICIAL_CALLS, 'HEAD'].find(hasCommit)

test.skipIf(NATS_SERVER === undefined || from === undefined)(
  'upgrade - nodes are replaced by those of another version, and no call and no stream is lost in silence',
  { timeout: 120_000 },
  async () => {
    const report = await upgrade({ from: from ?? 'HEAD', log: () => {} })
    expect(upgradeFaults(report)).toEqual([])
    expect(report.streamEnds).toMatchObject({
      'dialect at an old node that stopped': 'error -32603',
      'official stream at a new node that stopped': 'error -32603',
    })
  },
)
