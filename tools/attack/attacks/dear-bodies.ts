import { HostileAgent, registered } from '../agents.ts'
import type { Attack } from '../attack.ts'
import type { Caller } from '../caller.ts'
import type { DearRequest, Surface } from '../dear-requests.ts'
import { DEAR_AGENT, dearRequests } from '../dear-requests.ts'
import type { Scene } from '../scene.ts'
import { during } from '../tally.ts'

const LARGE = 9_900_000

/** The longest tick that one request may cause, in milliseconds of CPU time: with free-form parameters, and without. */
const MOST_FREE_MS = 100
const MOST_MS = 50

const SURFACES: readonly Surface[] = ['mcp', 'a2a', 'ce', 'management']

function ask(scene: Scene, caller: Caller, { surface, path, headers, body }: DearRequest): Promise<unknown> {
  const isManagement = surface === 'management'
  const asked = isManagement ? scene.operator : caller
  return scene.tally.of(asked.ask('POST', isManagement ? scene.api + path : path, { headers, body: body() }))
}

/** Resolves with the CPU time of the longest tick during a request; the better of two, as other work may join one. */
async function longestTick(scene: Scene, request: () => Promise<unknown>): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < 2; attempt++) {
    await scene.process.call('startTurns')
    await request()
    // The tick that ends with the answer is measured by the next timer.
    await new Promise((resolve) => setTimeout(resolve, 15))
    best = Math.min(best, await scene.process.call<number>('longestTurn'))
  }
  return best
}

export const dearBodies: Attack = {
  name: 'dear-bodies',
  about: 'single bodies that are dear to read, of every shape on every surface; then 50 connections of one caller',
  async prepare(scene) {
    const caller = scene.attacker()
    const agent = scene.use(await HostileAgent.answering('{"jsonrpc":"2.0","id":1,"result":{}}'))
    await registered(caller, DEAR_AGENT, agent.url)
    return async () => {
      for (const surface of SURFACES) {
        for (const request of dearRequests(scene.scaled(LARGE, 1_000_000), surface)) {
          const tick = await longestTick(scene, () => ask(scene, caller, request))
          const most = request.freeForm ? MOST_FREE_MS : MOST_MS
          scene.tally.expect(tick <= most, `${request.name}: a tick of ${tick.toFixed(0)} ms; ${most} are allowed`)
        }
      }
      const requests = dearRequests(scene.scaled(LARGE, 1_000_000) / 10, 'mcp')
      await during(scene.floodMs, 50, async (index) => {
        const request = requests[index % requests.length]
        if (request !== undefined) await ask(scene, caller, request)
      })
    }
  },
}
