import type { Attack } from '../attack.ts'
import { dearRequests } from '../dear-requests.ts'
import { during } from '../tally.ts'

export const forbiddenBodies: Attack = {
  name: 'forbidden-bodies',
  about: 'large bodies of a caller without any permission, on 20 connections',
  servers: ['guarded'],
  prepare: (scene) =>
    Promise.resolve(async () => {
      const { nobody } = scene
      const requests = (['mcp', 'a2a', 'ce'] as const).flatMap((surface) =>
        dearRequests(scene.scaled(1_000_000, 200_000), surface),
      )
      await during(scene.floodMs, 20, async (index) => {
        const request = requests[index % requests.length]
        if (request === undefined) return
        const { path, headers, body } = request
        await scene.tally.of(nobody.ask('POST', path, { headers, body }))
      })
      scene.tally.expect(scene.tally.countOf('403') > 0, 'no body of /ce was refused by the policy')
      scene.tally.expect(scene.tally.countOf('200 FORBIDDEN') > 0, 'no body of /mcp was refused by the policy')
    }),
}
