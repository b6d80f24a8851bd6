import { toolCall } from '../../harness/mcp.ts'
import type { Attack } from '../attack.ts'
import { failureOf, outcomeOf } from '../caller.ts'

const COMMANDS = 70
const BYTES = 9_900_000

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
    const bytes = scene.scaled(BYTES, 1_000_000)
    const body = `\u0416${'x'.repeat(bytes)}`
    const call = toolCall('command_send', { channel: 'attack.command', body, timeout_seconds: TIMEOUT_S })
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
      for (const end = performance.now() + scene.scaled(10_000, 2_000); performance.now() < end;) {
        await new Promise((resolve) => setTimeout(resolve, 250))
        peak = Math.max(peak, await scene.metric('broker_limit_use', 'limit="process_body_bytes"'))
      }
      // The other caller's body has a few bytes.
      scene.tally.expect(peak <= most + 4_096, `bodies of ${peak} bytes were held, and ${most} are allowed`)
    }
  },
}
