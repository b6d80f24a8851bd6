import { expect, test } from 'vitest'
import { freePort } from '@signalbox/testkit/free-port'

import { Cli, runCli } from './support/cli.ts'
import { serve } from './support/server.ts'
import { certificate } from './support/tls.ts'
import { testFolder } from '@signalbox/testkit/test-folder'

test('messages - an unknown flag or key suggests the setting that contains it', async () => {
  const { code, stderr } = await runCli({ args: ['--port', '9091', '--store=x'] })
  expect(code).toBe(2)
  expect(stderr).toContain('--port: unknown flag; did you mean --http-port?')
  expect(stderr).toContain('--store: unknown flag; did you mean --store-path?')
})

test('messages - / is 404 on both listeners: with paths in plain text, with links for browsers', async () => {
  const { http, api } = await serve({ connectors: { ce: { enable: false } }, console: { enable: false } })
  for (const [{ url }, path, other] of [
    [http, '/agents', '/metrics'],
    [api, '/metrics', '/mcp'],
  ] as const) {
    const plain = await fetch(url)
    const text = await plain.text()
    expect([plain.status, plain.headers.get('content-type')]).toEqual([404, 'text/plain; charset=utf-8'])
    expect(text).toMatch(/^404 page not found\n\nThis is the (shared|management) listener of Signalbox/)
    expect(text).toContain(`  ${path} `)
    expect(text).not.toContain(other)
    expect(text).not.toContain('/ce/')
    const page = await fetch(`${url}/?x=1`, { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } })
    expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(await page.text()).toContain(`<a href="${path}">`)
    const posted = await fetch(url, { method: 'POST', body: 'x' })
    expect([posted.status, await posted.text()]).toEqual([404, '404 page not found\n'])
    const linked = [...text.matchAll(/^ {2}(\/\S+) /gm)]
      .map(([, found = '']) => found)
      .filter((found) => !/[{/]$|\{|^\/mcp/.test(found))
    for (const found of linked) expect([found, (await fetch(`${url}${found}`)).status]).toEqual([found, 200])
  }
})

test('messages - plain HTTP to a TLS port is answered, and says so', async () => {
  const { http } = await serve({
    security: { certFile: certificate('server.crt'), keyFile: certificate('server.key') },
  })
  const url = http.url.replace('https:', 'http:')
  for (const init of [{}, { method: 'POST', body: 'x'.repeat(1000) }]) {
    const response = await fetch(`${url}/mcp`, init)
    expect(response.status).toBe(400)
    expect(await response.text()).toBe(
      'this port speaks TLS, and the request was plain HTTP; use https:// in the URL\n',
    )
  }
})

test('messages - a reserved channel name says the prefix at /ce too', async () => {
  const { http } = await serve()
  const answer = await fetch(`${http.url}/ce/subscribe/events?channel=_AGENTS_.x`)
  expect(await answer.json()).toMatchObject({
    message: 'reserved channel name',
    data: { code: 'CHANNEL_RESERVED', allowed: expect.stringContaining('does not begin with _AGENTS_.') },
  })
})

test('messages - a server whose NATS is down says so in one line without a stack', async () => {
  const servers = `nats://127.0.0.1:${await freePort()}`
  const env = { ENGINE: 'nats', NATS_SERVERS: servers, HTTP_PORT: '0', API_PORT: '0', STORE_PATH: testFolder() }
  const cli = new Cli({ env })
  await cli.until(() => cli.lines().length > 0, 'the message')
  const [line] = cli.lines()
  expect(line).toMatchObject({ msg: `nats: NATS cannot be reached at ${servers}; waiting for it` })
  expect(line?.['reason']).toContain('connection refused')
  expect(`${cli.stdout}${cli.stderr}`).not.toMatch(/\bat .*(?:\.js|\.ts|node:)/)
  cli.child.kill('SIGTERM')
  expect(await cli.exited).toEqual({ code: 0, signal: null })
})
