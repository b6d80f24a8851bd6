import { join } from 'node:path'
import { tmpdir } from 'node:os'

import type { Attack } from '../attack.ts'
import { HostileAgent } from '../agents.ts'
import { during } from '../tally.ts'

const CHANNEL = 'attack.filters'

/** The longest filter has 4,096 characters. */
const LITERAL = 'a'.repeat(4_000)

function often(condition: string): string {
  return Array.from({ length: Math.floor(4_000 / (condition.length + 4)) }, () => condition)
    .slice(0, 240)
    .join(' OR ')
}

/** Far above the time of one filter, and of other work on a busy machine. */
const MAX_MS = 750

const FILTERS = [
  `long LIKE '%${LITERAL}b'`,
  `long LIKE '%b${LITERAL}%'`,
  `long LIKE '%_${LITERAL}b%'`,
  `long LIKE '${'%a'.repeat(2_000)}%b'`,
  often(`long LIKE '%_b%'`),
  often(`LENGTH(long)=1`),
  often(`LOWER(long)=''`),
  often(`TRIM(long)=''`),
]

export const hostileFilters: Attack = {
  name: 'hostile-filters',
  about: 'eight subscriptions whose filters compare patterns of 4,000 characters with events of 60 KB',
  settings: {
    WEBHOOKS_ENABLE: 'true',
    WEBHOOKS_KEY_FILE: join(tmpdir(), `attack-webhooks-${process.pid}.key`),
    WEBHOOKS_ALLOW: '127.0.0.1',
  },
  async prepare(scene) {
    const attacker = scene.attacker()
    const sink = scene.use(
      await HostileAgent.start((_, response) => response.writeHead(200, { 'WebHook-Allowed-Origin': '*' }).end()),
    )
    for (const sql of FILTERS) {
      const config = { channel: CHANNEL, type: 'events' }
      const { status, text } = await attacker.post('/ce/subscriptions', { sink: sink.url, config, filters: [{ sql }] })
      if (status !== 201) throw new Error(`the subscription was not created: ${status} ${text.slice(0, 300)}`)
    }
    return async () => {
      const event = { channel: CHANNEL, body: 'x', tags: { ce_type: 't', ce_long: 'a'.repeat(60_000) } }
      let longest = 0
      await during(scene.floodMs, 2, async () => {
        const begin = performance.now()
        await scene.tally.of(attacker.tool('events_publish', event))
        longest = Math.max(longest, performance.now() - begin)
      })
      scene.tally.expect(longest < MAX_MS, `an answer waited ${Math.round(longest)} ms for filters`)
    }
  },
}
