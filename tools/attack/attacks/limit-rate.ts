import type { Attack } from '../attack.ts'
import { floodWith } from './flood.ts'

const RATE = 200

export const limitRate: Attack = {
  name: 'limit-rate',
  about: 'one caller at full speed, with LIMITS_CALLER_REQUESTS_PER_SECOND at 200',
  settings: { LIMITS_CALLER_REQUESTS_PER_SECOND: String(RATE) },
  prepare: (scene) =>
    Promise.resolve(async () => {
      const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
      const seconds = await floodWith(scene, scene.attacker(), ping, 32)
      const accepted = scene.tally.countOf('200')
      // A burst of twice the rate is allowed.
      const most = RATE * (seconds + 2) * 1.05
      scene.tally.expect(accepted <= most, `${accepted} requests were accepted in ${seconds.toFixed(1)} s`)
      scene.tally.expect(scene.tally.countOf('429') > 0, 'no request was refused')
    }),
}
