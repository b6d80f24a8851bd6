import type { Attack } from '../attack.ts'
import { during } from '../tally.ts'

/** A flood of a few seconds makes a few entries for each caller, action and minute. */
const MOST_ENTRIES = 50

interface AuditPage {
  readonly data: { readonly items: readonly unknown[] }
}

export const denials: Attack = {
  name: 'denials',
  about: 'a flood of calls that the policy denies, and of callers without a token',
  servers: ['guarded'],
  prepare: (scene) =>
    Promise.resolve(async () => {
      const { nobody, stranger } = scene
      await during(scene.floodMs, 32, async (index) => {
        if (index % 8 === 7) await scene.tally.of(stranger.tool('queue_send', { channel: 'honest', body: 'x' }))
        else if (index % 8 === 6) await scene.tally.of(nobody.ask('GET', '/ce/subscribe/events?channel=honest'))
        else await scene.tally.of(nobody.tool('queue_send', { channel: `honest.${index}`, body: 'x' }))
      })
      const { text } = await scene.operator.ask('GET', `${scene.api}/api/audit?outcome=denied&limit=1000`)
      const entries = (JSON.parse(text) as AuditPage).data.items.length
      scene.tally.count('audit entry', entries)
      scene.tally.expect(entries > 0, 'no denial was audited')
      scene.tally.expect(entries <= MOST_ENTRIES, `${entries} entries of denials were stored`)
    }),
}
