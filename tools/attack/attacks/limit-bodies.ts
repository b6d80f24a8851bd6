import type { Socket } from 'node:net'

import type { Attack } from '../attack.ts'
import { inParallel } from '../tally.ts'

const UPLOADS = 40
const BYTES = 9_900_000
const LIMIT = 64 * 2 ** 20

/** Sends a body without its last byte. */
function upload(socket: Socket, head: string, bytes: number): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve())
    socket.write(`${head}Content-Length: ${bytes}\r\n\r\n`)
    socket.write(Buffer.alloc(bytes - 1, 0x20), () => resolve())
  })
}

export const limitBodies: Attack = {
  name: 'limit-bodies',
  about: '40 bodies of 9.9 MB of one caller, each without its last byte, beyond its 64 MiB',
  // A network address may use half.
  settings: { LIMITS_PROCESS_BODY_BYTES: String(2 * LIMIT) },
  prepare: (scene) =>
    Promise.resolve(async () => {
      const caller = scene.attacker()
      const bytes = scene.scaled(BYTES, 5_000_000)
      const headers = Object.entries({ Host: new URL(scene.http).host, ...caller.identity.headers })
      const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
      const head = `POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\n${lines}`
      let open = 0
      await inParallel(UPLOADS, UPLOADS, async () => {
        const socket = await caller.socket()
        if (socket === undefined) return
        open++
        socket.once('close', () => open--)
        socket.on('data', (data: Buffer) => {
          scene.tally.count(/^HTTP\/1.1 (\d+)/.exec(data.toString('latin1'))?.[1] ?? 'more')
        })
        await upload(socket, head, bytes)
      })
      await new Promise((resolve) => setTimeout(resolve, 1_000))
      scene.tally.count('held', open)
      const held = await scene.metric('broker_limit_use', 'limit="process_body_bytes"')
      scene.tally.expect(held <= LIMIT + 4_096, `${held} bytes of bodies are held, and ${LIMIT} are allowed`)
      scene.tally.expect(scene.tally.countOf('429') > 0, 'no body was refused')
    }),
}
