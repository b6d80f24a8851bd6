import { expect, test } from 'vitest'

import { serve } from './support/server.ts'

const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

test('console - / of the management listener leads browsers to the page, and nobody else', async () => {
  const { api, http } = await serve()
  const redirected = await fetch(`${api.url}/`, { headers: BROWSER, redirect: 'manual' })
  expect([redirected.status, redirected.headers.get('location')]).toEqual([302, '/console/'])
  expect((await fetch(`${api.url}/`)).status).toBe(404)
  expect((await fetch(`${http.url}/`, { headers: BROWSER })).status).toBe(404)
  const page = await fetch(`${api.url}/console`, { headers: BROWSER })
  expect([page.status, new URL(page.url).pathname]).toEqual([200, '/console/'])
  const html = await page.text()
  const scripts = [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(([, path]) => path)
  expect(scripts.length).toBeGreaterThanOrEqual(2)
  for (const path of scripts) {
    const response = await fetch(`${api.url}/console/${path}`)
    expect([path, response.status, response.headers.get('cache-control')]).toEqual([
      path,
      200,
      'public, max-age=31536000, immutable',
    ])
  }
})

test('console - CONSOLE_ENABLE=false serves no page', async () => {
  const { api } = await serve({ console: { enable: false } })
  expect((await fetch(`${api.url}/console/`, { headers: BROWSER })).status).toBe(404)
  expect((await fetch(`${api.url}/`, { headers: BROWSER })).status).toBe(404)
})
