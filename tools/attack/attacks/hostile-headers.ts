import type { Attack } from '../attack.ts'
import { inParallel } from '../tally.ts'

/** Node accepts 16 KiB of headers. */
const LONG = 15_000

/** Values on which header patterns are slow. */
const HEADERS: readonly Readonly<Record<string, string>>[] = [
  { origin: `http://[${':'.repeat(LONG)}` },
  { origin: `http://[${'1:'.repeat(LONG / 2)}x` },
  { origin: `http://[${'0'.repeat(LONG)}]` },
  { origin: `http://${'a.'.repeat(LONG / 2)}` },
  { origin: `http://${'a-'.repeat(LONG / 2)}!` },
  { 'content-type': `application/json${';'.repeat(LONG)}` },
  { 'content-type': `application/json${'; a'.repeat(LONG / 3)}` },
  { 'content-type': `application/json;${' '.repeat(LONG)}x` },
  { 'content-type': `application/json; a="${'\\"'.repeat(LONG / 2)}` },
  { 'content-type': `${'a'.repeat(LONG / 2)}/${'b'.repeat(LONG / 2)}` },
  { accept: 'text/event-stream,'.repeat(LONG / 20) },
  { accept: '*/*;q=0.1 ,'.repeat(LONG / 12) },
  { authorization: `Bearer ${'a.'.repeat(LONG / 2)}` },
  { authorization: `Bearer ${' '.repeat(LONG)}x` },
  { authorization: `Bearer ${'e30'.repeat(LONG / 3)}` },
  { forwarded: `for=${'"[::1]:1";'.repeat(LONG / 12)}` },
  { 'x-forwarded-for': '1,'.repeat(LONG / 2) },
  { 'mcp-protocol-version': '2'.repeat(LONG) },
  { 'mcp-session-id': 'x'.repeat(LONG) },
  { 'last-event-id': '9'.repeat(LONG) },
  { 'content-encoding': 'gzip,'.repeat(LONG / 6) },
  { traceparent: `00-${'0'.repeat(LONG)}` },
  { tracestate: 'a=1,'.repeat(LONG / 4) },
  { 'ce-specversion': '1.0', 'ce-type': '%'.repeat(LONG) },
  { 'ce-specversion': '1.0', 'ce-type': '%e2%82'.repeat(LONG / 6) },
]

const PATHS = ['/mcp', '/a2a/attack', '/agents/register', '/ce/send/event', '/ce/send/event?channel=attack']

/** Headers that the server reads before authentication. */
export const hostileHeaders: Attack = {
  name: 'hostile-headers',
  about: 'Origin, Content-Type and other headers with values on which patterns are slow, without a token',
  prepare: (scene) =>
    Promise.resolve(async () => {
      const caller = scene.stranger
      const rounds = scene.scaled(20, 2)
      const all = HEADERS.flatMap((headers) => PATHS.map((path) => ({ headers, path })))
      await inParallel(all.length * rounds, 16, async (index) => {
        const { headers, path } = all[index % all.length] ?? { headers: {}, path: '/' }
        const type = { 'content-type': 'application/json' }
        await scene.tally.of(caller.ask('POST', path, { headers: { ...type, ...headers }, body: '{}' }))
      })
      await inParallel(HEADERS.length * rounds, 16, async (index) => {
        await scene.tally.of(caller.ask('OPTIONS', '/mcp', { headers: HEADERS[index % HEADERS.length] ?? {} }))
      })
      scene.tally.expect(scene.tally.countOf('5') === 0, 'the server failed over a header')
    }),
}
