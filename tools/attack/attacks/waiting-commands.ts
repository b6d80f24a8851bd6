import { toolCall } from '../../harness/mcp.ts'
import type { Attack } from '../attack.ts'
import { failureOf, outcomeOf } from '../caller.ts'

const COMMANDS = 70
const BYTES = 9_900_000

/** Long enough that all wait at a time. */
const TIMEOUT_S = 15

/** 70 commands of 9.9 MB that nobody answers; then their callers go away. */
export const waitingCommands: Attack = {
  name: 'waiting-commands',
  about: '70 waiting commands of 9.9 MB each, through /mcp and /ce, whose callers then go away',
  async prepare(scene) {
    const bytes = scene.scaled(BYTES, 1_000_000)
    const body = 'x'.repeat(bytes)
    const call = toolCall('command_send', { channel: 'attack.command', body, timeout_seconds: TIMEOUT_S })
    const ceHeaders = {
      'content-type': 'text/plain',
      'ce-specversion': '1.0',
      'ce-id': '1',
      'ce-source': '/a',
      'ce-type': 't',
    }
    const most = await scene.callerLimit('process_body_bytes', 64 * 2 ** 20)
    return async () => {
      const caller = scene.attacker()
      const waiting = Array.from({ length: COMMANDS }, async (_, index) => {
        try {
          const answer =
            index % 2 === 0
              ? await caller.post('/mcp', call)
              : await caller.ask('POST', `/ce/send/command?channel=attack.command&timeout=${TIMEOUT_S}`, {
                  headers: ceHeaders,
                  body,
                })
          scene.tally.count(outcomeOf(answer))
        } catch (error) {
          scene.tally.count(failureOf(error))
        }
      })
      void Promise.all(waiting)
      let peak = 0
      for (const end = performance.now() + scene.scaled(8_000, 2_000); performance.now() < end;) {
        await new Promise((resolve) => setTimeout(resolve, 250))
        peak = Math.max(peak, await scene.metric('broker_limit_use', 'limit="process_body_bytes"'))
      }
      // The other caller has a body of some bytes.
      scene.tally.expect(peak <= most + 4_096, `bodies of ${peak} bytes were held, and ${most} are allowed`)
    }
  },
}
