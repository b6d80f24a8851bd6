import type { Attack } from '../attack.ts'
import { inParallel } from '../tally.ts'

const OPEN_FILES = 1_024
const CONNECTIONS = 1_000

/** Connections of one address, silent or with half a head, up to the process's open-file limit and beyond it. */
export const connections: Attack = {
  name: 'connections',
  about: '1,000 connections of one address to a server with 1,024 open files',
  openFiles: OPEN_FILES,
  prepare: (scene) =>
    Promise.resolve(async () => {
      let open = 0
      await inParallel(CONNECTIONS, 50, async (index) => {
        const socket = await scene.attacker().socket()
        if (socket === undefined) {
          scene.tally.count('refused')
          return
        }
        open++
        socket.once('close', () => {
          open--
          scene.tally.count('closed')
        })
        socket.resume()
        if (index % 2 === 0) socket.write('POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-')
      })
      await new Promise((resolve) => setTimeout(resolve, 1_000))
      scene.tally.count('open', open)
      // A quarter of the open files is reserved; an address may use half of the rest.
      const most = (OPEN_FILES * 3) / 4 / 2
      scene.tally.expect(open <= most, `${open} connections of one address are open, and ${most} are allowed`)
    }),
}
