import type { Attack } from '../attack.ts'

/** Names with a meaning for NATS, for SQL, for files, or for JavaScript objects. */
const NAMES = [
  'attack.*',
  'attack.>',
  '>',
  '*',
  'attack..x',
  '.attack',
  'attack.',
  '$JS.API.STREAM.DELETE.attack',
  '$SYS.REQ.SERVER.PING',
  '$KV.attack',
  '_INBOX.attack',
  'attack x',
  'attack\r\nPUB attack 1\r\nx',
  'attack\tx',
  'attack\u0000x',
  'attack/../../etc/passwd',
  "attack'; DROP TABLE messages; --",
  'attack.__proto__',
  'attack.constructor',
  'attack.\u202Etxt',
  'attack.\uD800',
  `attack.${'x'.repeat(10_000)}`,
  `attack.${'x.'.repeat(100)}x`,
  'attack.ä',
] as const

/** The tools that send, with the arguments of each. */
const SENDS = [
  ['queue_send', {}],
  ['queue_receive', { wait_timeout_seconds: 0 }],
  ['queue_peek', {}],
  ['events_publish', {}],
  ['events_store_publish', {}],
  ['command_send', { timeout_seconds: 1 }],
] as const

/** A name reaches subjects, streams and consumers of NATS, and statements of SQL. */
export const hostileNames: Attack = {
  name: 'hostile-names',
  about: 'channel names with wildcards, control characters, line ends, subjects of the NATS servers, or SQL',
  prepare: (scene) =>
    Promise.resolve(async () => {
      const caller = scene.attacker()
      for (const name of NAMES) {
        const shown = JSON.stringify(name.slice(0, 40))
        for (const [tool, given] of SENDS) {
          const args = tool.startsWith('queue_') && tool !== 'queue_send' ? given : { ...given, body: 'x' }
          const answer = await scene.single(shown, () => caller.tool(tool, { channel: name, ...args }))
          const failed = answer === undefined || answer.status >= 500 || /-32603|ENGINE_/.test(answer.text)
          scene.tally.expect(!failed, `${tool} to ${shown}: ${answer?.status} ${answer?.text.slice(0, 200)}`)
        }
        const path = `/ce/subscribe/events?channel=${encodeURIComponent(name.toWellFormed())}`
        const stream = await caller.stream(path)
        scene.tally.count(stream.isStream ? 'stream' : String(stream.status))
        scene.tally.expect(stream.status < 500, `${path.slice(0, 80)}: ${stream.status}`)
        stream.close()
      }
    }),
}
