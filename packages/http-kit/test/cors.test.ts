import cors from '@fastify/cors'
import fastify from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'

import type { CorsSettings } from '../src/index.ts'
import { CORS_DEFAULTS, fastifyCorsOptions } from '../src/index.ts'

async function serve(settings?: CorsSettings): Promise<string> {
  const app = fastify()
  await app.register(cors, fastifyCorsOptions(settings))
  app.post('/mcp', async () => ({ reached: true }))
  onTestFinished(() => app.close())
  return app.listen({ port: 0, host: '127.0.0.1' })
}

const preflight = (url: string, origin: string): Promise<Response> =>
  fetch(`${url}/mcp`, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'content-type,mcp-session-id',
    },
  })

describe('CORS', () => {
  test('CORS-1, CORS-2, CORS-3, CORS-5, CORS-6, CORS-7 - a preflight is answered to the letter of the table, before any route', async () => {
    const response = await preflight(await serve(), 'https://anywhere.example')
    expect(response.status).toBe(204)
    expect(await response.text()).toBe('')
    const { headers } = response
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('access-control-allow-methods')).toBe('GET, POST, DELETE, OPTIONS')
    expect(headers.get('access-control-allow-headers')).toBe(
      'Authorization, Content-Type, MCP-Protocol-Version, MCP-Session-Id, Last-Event-ID, Accept',
    )
    expect(headers.get('access-control-expose-headers')).toBe('MCP-Session-Id, MCP-Protocol-Version')
    expect(headers.get('access-control-allow-credentials')).toBeNull()
    expect(headers.get('access-control-max-age')).toBe('86400')
  })

  test('CORS-1, CORS-4 - answers carry the origin and the exposed headers', async () => {
    const response = await fetch(`${await serve()}/mcp`, { method: 'POST', headers: { Origin: 'https://a.example' } })
    expect(await response.json()).toEqual({ reached: true })
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
    expect(response.headers.get('access-control-expose-headers')).toBe('MCP-Session-Id, MCP-Protocol-Version')
    expect(response.headers.get('vary')).toBeNull()
  })

  test('CORS - a list of origins is compared exactly and varies by origin', async () => {
    const url = await serve({ ...CORS_DEFAULTS, allowOrigins: ['https://a.example', 'https://b.example'] })
    const listed = await preflight(url, 'https://b.example')
    expect(listed.headers.get('access-control-allow-origin')).toBe('https://b.example')
    expect(listed.headers.get('vary')).toBe('Origin')
    const other = await preflight(url, 'https://b.example.evil.com')
    expect(other.headers.get('access-control-allow-origin')).toBeNull()
    expect(other.headers.get('vary')).toBe('Origin')
  })

  test('CORS - credentials for every origin are refused', () => {
    expect(() => fastifyCorsOptions({ ...CORS_DEFAULTS, allowCredentials: true })).toThrow(RangeError)
    expect(
      fastifyCorsOptions({ ...CORS_DEFAULTS, allowOrigins: ['https://a.example'], allowCredentials: true }).credentials,
    ).toBe(true)
  })
})
