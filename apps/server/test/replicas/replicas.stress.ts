import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { expect, test } from 'vitest'

import { serveNodes } from '../support/nodes.ts'
import { serve } from '../support/server.ts'
import { MOST_UNDER_WAY, runReplicas } from './scenario.ts'

const STRESS_MS = Number(process.env['STRESS_MS'] ?? 60_000)

test.each([
  ['embedded', 1],
  ['nats', 2],
] as const)(
  'A28, R12 - replicas on %s, nodes: %i: rounds of kills and replacements under load',
  async (engine, count) => {
    if (engine === 'nats' && NATS_SERVER === undefined) return
    const config = { connectors: { a2a: { agentTtlSeconds: 2 } } }
    const nodes = engine === 'nats' ? await serveNodes(count, config) : [await serve(config)]
    const report = await runReplicas(
      nodes.map(({ http }) => http.url),
      STRESS_MS / 4,
    )
    process.stdout.write(`${JSON.stringify({ engine, nodes: count, ...report })}\n`)
    expect(report.failedOtherwise).toEqual([])
    expect(report.failedAtKills).toBeLessThanOrEqual(report.rounds * MOST_UNDER_WAY)
  },
)
