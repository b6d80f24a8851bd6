import type { Attack } from '../attack.ts'
import { inParallel } from '../tally.ts'

const UPLOADS = 100
const BYTES = 10_000_000

/** Bodies of one caller that never end, with the default limits. `limit-bodies` tests a limit that is set. */
export const unfinishedBodies: Attack = {
  name: 'unfinished-bodies',
  about: '100 bodies of 10 MB of one caller, each without its last byte, with the default limits',
  async prepare(scene) {
    const most = await scene.callerLimit('process_body_bytes', 64 * 2 ** 20)
    return async () => {
      const caller = scene.attacker()
      const headers = Object.entries({ Host: new URL(scene.http).host, ...caller.identity.headers })
      const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
      const head = `POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\n${lines}Content-Length: ${BYTES}\r\n\r\n`
      await inParallel(scene.scaled(UPLOADS, 40), UPLOADS, async () => {
        const socket = await caller.socket()
        if (socket === undefined) return
        socket.on('data', (data: Buffer) => {
          scene.tally.count(/^HTTP\/1.1 (\d+)/.exec(data.toString('latin1'))?.[1] ?? 'more')
        })
        await new Promise<void>((resolve) => {
          socket.once('close', () => resolve())
          socket.write(head)
          socket.write(Buffer.alloc(BYTES - 1, 0x20), () => resolve())
        })
      })
      const held = await scene.metric('broker_limit_use', 'limit="process_body_bytes"')
      scene.tally.expect(held <= most, `${held} bytes of bodies are held, and ${most} are allowed`)
      scene.tally.expect(scene.tally.countOf('429') > 0, 'no body was refused')
    }
  },
}
