import { MAX_JSON_PARTS } from '@signalbox/http-kit/internal'
import { toolCall } from '@signalbox/testkit/mcp-client'

import type { Answer, Caller } from '../attack/callers.ts'
import { registered, startAgent, startAnsweringAgent } from '../attack/callers.ts'
import type { Attack, Scene } from '../attack/scene.ts'
import { during, inParallel } from '../attack/scene.ts'
import type { DearRequest, Surface } from './dear-requests.ts'
import { DEAR_AGENT, dearRequests } from './dear-requests.ts'

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
    const agent = scene.use(await startAnsweringAgent('{"jsonrpc":"2.0","id":1,"result":{}}'))
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

export const forbiddenBodies: Attack = {
  name: 'forbidden-bodies',
  about: 'large bodies of a caller without any permission, on 20 connections',
  servers: ['guarded'],
  prepare(scene) {
    const requests = (['ce', 'mcp', 'a2a'] as const).flatMap((surface) =>
      dearRequests(scene.scaled(1_000_000, 200_000), surface),
    )
    return async () => {
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
    }
  },
}

/** The bytes of the largest body, and the values that just fit into the limit of one JSON text. */
const LARGEST_BYTES = 9_900_000
const MOST_VALUES = MAX_JSON_PARTS - 100

/**
 * JSON texts whose values take twenty times the memory of their text: as large as a body may be, and with as many
 * values as the server reads.
 */
const FILLS: readonly (readonly [fill: string, count: number, calls: number])[] = [
  ['{}', LARGEST_BYTES / 3, 6],
  ['[[[[]]]]', LARGEST_BYTES / 9, 6],
  ['{}', MOST_VALUES, 40],
  ['[]', MOST_VALUES, 40],
  ['[[[[]]]]', MOST_VALUES / 4, 40],
  ['"ab"', MOST_VALUES, 40],
]

function manyOf(fill: string, count: number): string {
  return `[${Array.from({ length: Math.floor(count) }, () => fill).join(',')}]`
}

/** Calls that wait for a silent agent, with arguments that are small as text and large as values. */
export const heldValues: Attack = {
  name: 'held-values',
  about: 'waiting calls of 9.9 MB whose JSON is millions of empty objects and arrays, and as many as are read',
  async prepare(scene) {
    const caller = scene.attacker()
    const agent = scene.use(await startAgent((request) => void request.resume()))
    await registered(caller, 'attack-silent', agent.url)
    return async () => {
      for (const [fill, count, calls] of FILLS) {
        const values = manyOf(fill, count)
        const message = Buffer.from(
          `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"configuration":{"timeout":5},"x":${values}}}`,
        )
        const call = toolCall('agent_query', {
          agent_id: 'attack-silent',
          method: 'tasks/get',
          params: { configuration: { timeout: 5 } },
        })
        const query = Buffer.from(call.replace('"timeout":5}', `"timeout":5},"x":${values}`))
        await Promise.all(
          Array.from({ length: calls }, async (_, index) => {
            await scene.tally.of(
              index % 2 === 0 ? caller.post('/mcp', query) : caller.post('/a2a/attack-silent', message),
            )
          }),
        )
      }
    }
  },
}

/** Bodies of one caller that never end, with the default limits. */
export const unfinishedBodies: Attack = {
  name: 'unfinished-bodies',
  about: '100 bodies of 10 MB of one caller, each without its last byte, with the default limits',
  async prepare(scene) {
    const most = await scene.callerLimit('process_body_bytes', 64 * 2 ** 20)
    return () => uploadUnfinished(scene, scene.scaled(100, 40), 10_000_000, most)
  },
}

const BODY_LIMIT = 64 * 2 ** 20

export const limitBodies: Attack = {
  name: 'limit-bodies',
  about: '40 bodies of 9.9 MB of one caller, each without its last byte, beyond its 64 MiB',
  // A network address may use half.
  settings: { LIMITS_PROCESS_BODY_BYTES: String(2 * BODY_LIMIT) },
  prepare: (scene) => () => uploadUnfinished(scene, 40, scene.scaled(9_900_000, 5_000_000), BODY_LIMIT + 4_096),
}

/** Sends bodies without their last byte, all at once, and checks the bytes that the server holds. */
async function uploadUnfinished(scene: Scene, uploads: number, bytes: number, most: number): Promise<void> {
  const caller = scene.attacker()
  const headers = Object.entries({ Host: new URL(scene.http).host, ...caller.identity.headers })
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const head = `POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\n${lines}Content-Length: ${bytes}\r\n\r\n`
  const body = Buffer.alloc(bytes - 1, 0x20)
  let open = 0
  await inParallel(uploads, uploads, async () => {
    const socket = await caller.socket()
    if (socket === undefined) return
    open++
    socket.once('close', () => open--)
    socket.on('data', (data: Buffer) => {
      scene.tally.count(/^HTTP\/1.1 (\d+)/.exec(data.toString('latin1'))?.[1] ?? 'more')
    })
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve())
      socket.write(head)
      socket.write(body, () => resolve())
    })
  })
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  scene.tally.count('held', open)
  const held = await scene.metric('broker_limit_use', 'limit="process_body_bytes"')
  scene.tally.expect(held <= most, `${held} bytes of bodies are held, and ${most} are allowed`)
  scene.tally.expect(scene.tally.countOf('429') > 0, 'no body was refused')
}

const COMMANDS = 70
const COMMAND_BYTES = 9_900_000

/** Long enough that all commands wait at the same time. */
const TIMEOUT_S = 15

/** Several callers, so that the limit of one caller does not apply. */
const CALLERS = 3

/**
 * 70 unanswered commands of 9.9 MB; then their callers disconnect. V8 takes two bytes for each character of such a
 * text.
 */
export const waitingCommands: Attack = {
  name: 'waiting-commands',
  about: '70 waiting commands of 9.9 MB each, by three callers through /mcp and /ce, which then disconnect',
  async prepare(scene) {
    const bytes = scene.scaled(COMMAND_BYTES, 1_000_000)
    const text = `\u0416${'x'.repeat(bytes)}`
    const body = Buffer.from(text)
    const call = Buffer.from(
      toolCall('command_send', { channel: 'attack.command', body: text, timeout_seconds: TIMEOUT_S }),
    )
    const ceHeaders = {
      'content-type': 'text/plain',
      'ce-specversion': '1.0',
      'ce-id': '1',
      'ce-source': '/a',
      'ce-type': 't',
    }
    const most = await scene.processLimit('process_body_bytes')
    return async () => {
      const waiting = Array.from({ length: COMMANDS }, async (_, index) => {
        const caller = scene.attacker(index % CALLERS)
        // In sequence: concurrent bodies each take a part of the budget, and few complete.
        await new Promise((resolve) => setTimeout(resolve, index * scene.scaled(100, 20)))
        const path = `/ce/send/command?channel=attack.command&timeout=${TIMEOUT_S}`
        await scene.tally.of(
          index % 2 === 0 ? caller.post('/mcp', call) : caller.ask('POST', path, { headers: ceHeaders, body }),
        )
      })
      void Promise.all(waiting)
      let peak = 0
      for (const end = performance.now() + scene.scaled(10_000, 2_000); performance.now() < end;) {
        await new Promise((resolve) => setTimeout(resolve, 250))
        peak = Math.max(peak, await scene.metric('broker_limit_use', 'limit="process_body_bytes"'))
      }
      // The other caller's body has a few bytes.
      scene.tally.expect(peak <= most + 4_096, `bodies of ${peak} bytes were held, and ${most} are allowed`)
    }
  },
}
