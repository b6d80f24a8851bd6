import type { Attack } from '../attack.ts'
import { dearRequests } from '../dear-requests.ts'
import { during } from '../tally.ts'

export const forbiddenBodies: Attack = {
  name: 'forbidden-bodies',
  about: 'large bodies of a caller without any permission, on 20 connections',
  servers: ['guarded'],
  prepare(scene) {
    const requests = (['ce', 'mcp', 'a2a'] as const).flatMap((surface) =>
      dearRequests(scene.scaled(1_000_000, 200_000), surface),
    )
    return Promise.resolve(async () => {
      const { nobody } = scene
      await during(scene.floodMs, 20, async (index) => {
        // A step that is prime to their number, so that all surfaces come early.
        const request = requests[(index * 101) % requests.length]
        if (request === undefined) return
        const { path, headers, body } = request
        await scene.tally.of(nobody.ask('POST', path, { headers, body: body() }))
      })
      scene.tally.expect(scene.tally.countOf('403') > 0, 'no body of /ce was refused by the policy')
      scene.tally.expect(scene.tally.countOf('200 FORBIDDEN') > 0, 'no body of /mcp was refused by the policy')
    })
  },
}
