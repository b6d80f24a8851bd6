import { WebSocket } from 'ws'

import type { Attack } from '../attack.ts'
import type { Caller } from '../caller.ts'
import { failureOf } from '../caller.ts'
import type { Scene } from '../scene.ts'
import { inParallel } from '../tally.ts'

const LIMIT = 256
const MORE = 50

/** A network address may use half of the process's limit. */
const SETTINGS = { LIMITS_PROCESS_STREAMS: String(2 * LIMIT) }

function expectLimit(scene: Scene, opened: number): void {
  scene.tally.expect(opened === LIMIT, `${opened} streams of one caller were opened, and ${LIMIT} are allowed`)
}

/** Opens streams beyond the limit; the honest caller needs no stream. */
function streams(name: string, about: string, path: (index: number) => string): Attack {
  return {
    name,
    about,
    settings: SETTINGS,
    prepare: (scene) =>
      Promise.resolve(async () => {
        const caller = scene.attacker()
        await inParallel(LIMIT + MORE, 20, async (index) => {
          try {
            const stream = await caller.stream(path(index))
            if (stream.isStream) stream.drain()
            else void stream.rest()
            scene.tally.count(stream.isStream ? 'stream' : String(stream.status))
          } catch (error) {
            scene.tally.count(failureOf(error))
          }
        })
        expectLimit(scene, scene.tally.countOf('stream'))
        scene.tally.expect(scene.tally.countOf('429') === MORE, 'the others were not answered with 429')
      }),
  }
}

export const limitMcpStreams = streams(
  'limit-streams-mcp',
  'GET /mcp streams of one caller, beyond its 256',
  () => '/mcp',
)

export const limitCeStreams = streams(
  'limit-streams-ce',
  'subscriptions of one caller to events and commands, beyond its 256',
  (index) => `/ce/subscribe/${index % 2 === 0 ? 'events' : 'commands'}?channel=attack.${index}`,
)

/** Resolves with the status of a refusal, or with `stream`. */
function openMonitor(scene: Scene, caller: Caller): Promise<string> {
  const socket = new WebSocket(`${scene.api.replace('http', 'ws')}/api/monitor`, {
    headers: caller.identity.headers,
    localAddress: caller.identity.address,
    perMessageDeflate: false,
  })
  scene.use({ [Symbol.dispose]: () => socket.terminate() })
  return new Promise((resolve) => {
    socket.once('open', () => resolve('stream'))
    socket.once('unexpected-response', (_request, response) => resolve(String(response.statusCode)))
    socket.on('error', (error) => resolve(failureOf(error)))
  })
}

export const limitMonitors: Attack = {
  name: 'limit-streams-monitor',
  about: 'monitors of one operator, beyond its 256 streams',
  settings: SETTINGS,
  prepare: (scene) =>
    Promise.resolve(async () => {
      await inParallel(LIMIT + MORE, 20, async () => {
        scene.tally.count(await openMonitor(scene, scene.viewer))
      })
      expectLimit(scene, scene.tally.countOf('stream'))
    }),
}
