import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { connect } from '@signalbox/client'
import { testFolder } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'

import { APP, Cli, INHERITED, runCli } from './support/cli.ts'

/** A demo on free ports, and the folder of its temporary files. */
class Demo {
  readonly temporary = testFolder()
  readonly cli = new Cli({ args: ['demo', '--port=0', '--console-port=0'], env: { TMPDIR: this.temporary } })

  /** Resolves when the demo has printed the guide. */
  async ready(): Promise<{ http: string; api: string; token: string }> {
    await this.cli.until(() => this.cli.stdout.includes('Ctrl-C'), 'the guide')
    const urls = /SIGNALBOX_URL=(\S+) SIGNALBOX_API_URL=(\S+) SIGNALBOX_TOKEN=(\S+)/
    const [, http = '', api = '', token = ''] = urls.exec(this.cli.stdout) ?? []
    return { http, api, token }
  }

  async end(...signals: readonly NodeJS.Signals[]) {
    for (const signal of signals) this.cli.child.kill(signal)
    return this.cli.exited
  }
}

/** Pastes the commands into a shell in which `signalbox` is the command of the source. */
async function paste(text: string): Promise<string> {
  const start = join(APP, 'scripts', 'start.js')
  const signalbox = `signalbox() { '${process.execPath}' --conditions=@signalbox/source '${start}' "$@"; }`
  const { stdout } = await promisify(execFile)('bash', ['-c', `set -e\n${signalbox}\n${text}`], {
    env: { ...INHERITED, XDG_CONFIG_HOME: testFolder() },
  })
  return stdout
}

test('demo - every part works, the commands of its guide too, and Ctrl-C leaves nothing behind', async () => {
  const demo = new Demo()
  const { http, api, token } = await demo.ready()
  expect(await (await fetch(`${api}/console/`)).text()).toContain('<title>')

  const closing = new AbortController()
  const sb = connect(http, { token, signal: closing.signal, onError: () => {} })
  onTestFinished(() => sb.close())
  const translated = Promise.withResolvers<void>()
  sb.store<{ state: string }>('orders').on(({ data }) => data.state === 'translated' && translated.resolve(), {
    from: 'first',
  })
  const printed = Promise.withResolvers<void>()
  sb.store('archive').on(() => printed.resolve(), { from: 'first' })
  await Promise.all([translated.promise, printed.promise])
  const { data: refused } = (await (await fetch(`${api}/api/webhooks`)).json()) as { data: { items: unknown[] } }
  expect(refused.items).toEqual([expect.objectContaining({ channel: 'orders', owner: 'billing' })])
  const cards = await sb.agents.list()
  expect(cards.map(({ agent_id }) => agent_id)).toEqual(['planner', 'proofreader', 'translator'])
  expect(cards.at(-1)).toMatchObject({ instances: [{}, {}] })

  // The printer refuses the first job.
  for await (const job of sb.queue('prints.dead').receive({ wait: '30s' })) await job.nack()
  const [, guide = ''] = demo.cli.stdout.split('Six things to try.')
  const lines = guide.split('\n').filter((line) => /^ +(?:export|signalbox|curl) /.test(line))
  expect(lines).toHaveLength(6)
  const [exported = '', ...commands] = lines
  const answers = await Promise.all(commands.map((command) => paste(`${exported}\n${command}`)))
  expect(answers).toEqual(
    ['is at the printer', '✓', 'prints is paused', '1', 'translator'].map((text) => expect.stringContaining(text)),
  )
  const screens = [...guide.matchAll(/http:\S+#\/([\w-]+)/g)].map(([, screen]) => screen)
  expect(screens).toEqual(['live', 'agents', 'channels', 'dead-letters'])

  const urls = [http, api, ...cards.flatMap(({ url }) => (typeof url === 'string' ? [url] : []))]
  expect(urls).toHaveLength(4)
  closing.abort()
  expect(readdirSync(demo.temporary)).toHaveLength(1)
  expect(await demo.end('SIGINT')).toEqual({ code: 0, signal: null })
  expect(demo.cli.stderr).toBe('')
  expect(readdirSync(demo.temporary)).toEqual([])
  for (const url of urls) await expect(fetch(url)).rejects.toThrow('fetch failed')
})

test.each([
  { signals: ['SIGTERM'] as const, code: 0 },
  // npx passes Ctrl-C on, which the terminal sent to both.
  { signals: ['SIGINT', 'SIGINT'] as const, code: 130 },
  { signals: ['SIGHUP'] as const, code: 129 },
])('demo - $signals leaves no folder behind', async ({ signals, code }) => {
  const demo = new Demo()
  await demo.ready()
  const ended = await demo.end(...signals)
  expect(ended.signal).toBe(null)
  // The kernel may merge two signals.
  expect([0, code]).toContain(ended.code)
  expect(readdirSync(demo.temporary)).toEqual([])
})

test('demo - a start that fails says why, and leaves no folder behind', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const env = { TMPDIR: testFolder() }
  for (const args of [
    ['--port', String(port), '--console-port=0'],
    ['--port=0', '--console-port', String(port)],
  ]) {
    const { code, stdout, stderr } = await runCli({ args: ['demo', ...args], env })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(new RegExp(`^signalbox: \\w+\\.port: port ${port} on 127\\.0\\.0\\.1 is in use; .*\\n$`))
  }
  expect(readdirSync(env.TMPDIR)).toEqual([])
  const wrong = await runCli({ args: ['demo', '--port', 'many'], env })
  expect(wrong).toMatchObject({ code: 2, stdout: '' })
})
