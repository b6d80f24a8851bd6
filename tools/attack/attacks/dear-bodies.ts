import { HostileAgent, registered } from '../agents.ts'
import type { Attack } from '../attack.ts'
import type { Answer, Caller } from '../caller.ts'
import type { DearRequest, Surface } from '../dear-requests.ts'
import { DEAR_AGENT, dearRequests } from '../dear-requests.ts'
import type { Scene } from '../scene.ts'
import { during } from '../tally.ts'

const LARGE = 9_900_000

/** The longest tick that a request with free-form parameters may cause, in milliseconds of CPU time. */
const MOST_FREE_MS = 100

const SURFACES: readonly Surface[] = ['mcp', 'a2a', 'ce', 'management']

function ask(scene: Scene, caller: Caller, { surface, path, headers, body }: DearRequest): Promise<Answer> {
  const isManagement = surface === 'management'
  const asked = isManagement ? scene.operator : caller
  return asked.ask('POST', isManagement ? scene.api + path : path, { headers, body: body() })
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
          const most = request.freeForm ? MOST_FREE_MS : undefined
          await scene.single(request.name, () => ask(scene, caller, request), most)
        }
      }
      const requests = dearRequests(scene.scaled(LARGE, 1_000_000) / 10, 'mcp')
      await during(scene.floodMs, 50, async (index) => {
        const request = requests[index % requests.length]
        if (request !== undefined) await scene.tally.of(ask(scene, caller, request))
      })
    }
  },
}
