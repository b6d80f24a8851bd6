import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { expect, test } from 'vitest'

import { webhookFaults, webhookKills, webhookSummary } from '../cluster/webhook-kills.ts'

test.skipIf(NATS_SERVER === undefined)(
  'cluster - another node delivers every event in order when the node that serves webhooks is killed',
  async () => {
    const report = await webhookKills({ kills: 2, everyMs: 0, log: () => {} })
    process.stdout.write(webhookSummary(report))
    expect(webhookFaults(report)).toEqual([])
    expect(report.takeOverMs).toHaveLength(2 * report.subscriptions)
  },
)
