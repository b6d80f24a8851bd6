import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'

import { freePort } from '@signalbox/testkit/free-port'
import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { describe, expect, onTestFinished, test } from 'vitest'

import { serve } from './support/server.ts'

const NGINX = ['nginx', '/usr/sbin/nginx'].find((command) => spawnSync(command, ['-v']).status === 0)
if (NGINX === undefined) {
  process.stderr.write('tests of nginx are skipped: no nginx; apt-get install -y --no-install-recommends nginx-light\n')
}

const root = join(import.meta.dirname, '../../..')

/** The configurations for users: of the compose file, and of the guide. */
const CONFIGURATIONS: readonly (readonly [string, string])[] = [
  ['compose/nats/front.conf', readFileSync(join(root, 'deploy/compose/nats/front.conf'), 'utf8')],
  [
    'the guide',
    /^# front\.conf.*?^```/ms.exec(readFileSync(join(root, 'docs/guides/clustering.md'), 'utf8'))?.[0].slice(0, -3) ??
      '',
  ],
]

/** Starts nginx with a configuration in front of a server; it ends with the test. */
async function startNginx(configuration: string, server: string): Promise<number> {
  const folder = testFolder()
  const port = await freePort()
  const site = configuration
    .replace('listen 9090;', `listen 127.0.0.1:${port};`)
    .replace('nodes:9090;', `${server};`)
    .replace(/server signalbox-1:9090;.*?\}/, `server ${server}; }`)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  )
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${join(folder, 'pid')}; error_log ${join(folder, 'errors')};
events {} http { access_log off; ${temporary.join(' ')} ${site} }`,
  )
  const nginx = spawn(NGINX ?? '', ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'errors')])
  const ended = once(nginx, 'exit')
  onTestFinished(async () => {
    nginx.kill()
    await ended
  })
  await until(async () => {
    if (nginx.exitCode !== null) throw new Error(readFileSync(join(folder, 'errors'), 'utf8'))
    return (await fetch(`http://127.0.0.1:${port}/ping`).catch(() => undefined))?.ok === true
  })
  return port
}

describe.skipIf(NGINX === undefined)('nginx', () => {
  test.each(CONFIGURATIONS)('nginx - behind %s a client cannot name its own address', async (_, configuration) => {
    const { http } = await serve({
      trustedProxies: ['127.0.0.1'],
      limits: { process: { requestsInFlight: 202 } },
    })
    const port = await startNginx(configuration, new URL(http.url).host)
    const agent = new Agent({ localAddress: '127.0.0.9' })
    const aborted = new AbortController()
    onTestFinished(() => aborted.abort())
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'queue_receive', arguments: { channel: 'q', max_messages: 1, wait_timeout_seconds: 60 } },
    })
    const refused: (number | undefined)[] = []
    for (let i = 0; i < 150; i++) {
      const address = `203.0.113.${i}`
      const headers = {
        'content-type': 'application/json',
        'content-length': String(body.length),
        forwarded: `for=${address}`,
        'x-forwarded-for': address,
        'x-real-ip': address,
      }
      const asked = request(
        { port, host: '127.0.0.1', path: '/mcp', method: 'POST', agent, headers, signal: aborted.signal },
        (response) => {
          response.resume()
          response.on('error', () => {})
          refused.push(response.statusCode)
        },
      )
      asked.on('error', () => {})
      asked.end(body)
    }
    await until(() => refused.length === 49)
    expect(new Set(refused)).toEqual(new Set([429]))
    // Another client still has its half.
    const other = new Agent({ localAddress: '127.0.0.8' })
    const status = await new Promise((resolve, reject) => {
      const asked = request({ port, host: '127.0.0.1', path: '/agents', agent: other }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      asked.on('error', reject).end()
    })
    expect(status).toBe(200)
  })
})
