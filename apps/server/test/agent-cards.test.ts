import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { AgentCard } from '@a2a-js/sdk'
import { verifyAgentCardSignature } from '@a2a-js/sdk'
import { testFolder } from '@signalbox/testkit/test-folder'
import type { JWK } from 'jose'
import { expect, test } from 'vitest'

import { createConfig } from '../src/config/load.ts'
import { register } from './support/agent.ts'
import { callTool } from './support/mcp.ts'
import { serve } from './support/server.ts'

const CARD = '/.well-known/agent-card.json'
const V1 = { 'a2a-version': '1.0' }
const AGENT = { agent_id: 'weather', name: 'Weather', description: 'Forecasts', url: 'http://127.0.0.1:9/' }

function cardKeysFile(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const file = join(testFolder(), 'keys.pem')
  writeFileSync(file, privateKey.export({ format: 'pem', type: 'pkcs8' }))
  return file
}

test('A21 - the server signs with CONNECTORSA2_A_CARD_KEYS_FILE and PUBLIC_URL, and publishes the key', async () => {
  const publicUrl = 'https://broker.example'
  const { http } = await serve({ publicUrl, connectors: { a2a: { cardKeysFile: cardKeysFile() } } })
  await register(http.url, AGENT)
  const { keys } = (await (await fetch(`${http.url}/.well-known/jwks.json`)).json()) as { keys: [JWK] }
  const card = (await (await fetch(`${http.url}/a2a/weather${CARD}`, { headers: V1 })).json()) as AgentCard
  await verifyAgentCardSignature(async (kid, jku) => {
    expect([kid, jku]).toEqual([keys[0].kid, `${publicUrl}/.well-known/jwks.json`])
    return keys[0]
  })(card)
})

test('A21 - without PUBLIC_URL nothing is signed, and no keys are published without a file', async () => {
  const { http } = await serve({ connectors: { a2a: { cardKeysFile: cardKeysFile() } } })
  expect(await (await fetch(http.url + CARD, { headers: V1 })).json()).not.toHaveProperty('signatures')
  const other = await serve({ publicUrl: 'https://broker.example' })
  expect(await (await fetch(`${other.http.url}/.well-known/jwks.json`)).json()).toEqual({ keys: [] })
  expect(await (await fetch(other.http.url + CARD, { headers: V1 })).json()).not.toHaveProperty('signatures')
})

test('A21 - a key file or a public URL that cannot be used stops the start', async () => {
  await expect(serve({ connectors: { a2a: { cardKeysFile: '/no/such/file' } } })).rejects.toThrow(
    /connectors\.a2a\.cardKeysFile: "\/no\/such\/file"/,
  )
  for (const publicUrl of ['https://broker.example/?a=1', 'https://[', 'https://user:secret@broker.example']) {
    expect(() => createConfig({ publicUrl })).toThrow(/publicUrl: .* without query, fragment and credentials/)
    expect(() => createConfig({ publicUrl })).not.toThrow('secret')
  }
})

test('A20 - the registry returns an agent card unchanged, and the card of the gateway matches it', async () => {
  const { http } = await serve({ connectors: { a2a: { cardKeysFile: cardKeysFile() } } })
  const signed = {
    signatures: [{ protected: 'a', signature: 'b' }],
    a2a: { wire: '1.0' },
    skills: [{ id: 's', name: 'S' }],
  }
  const registered = await register(http.url, { ...AGENT, ...signed })
  expect(registered).toMatchObject({ ...AGENT, ...signed })
  const one = await (await fetch(`${http.url}/agents/weather`)).json()
  expect(one).toEqual(registered)
  expect(await (await fetch(`${http.url}/agents`)).json()).toEqual([registered])
  expect(JSON.parse((await callTool(http.url, 'agent_info', { agent_id: 'weather' })).text)).toEqual(registered)
  const shown: unknown = await (await fetch(`${http.url}/a2a/weather${CARD}`)).json()
  const { agent_id, name, description } = AGENT
  expect(shown).toMatchObject({ agent_id, name, description, skills: [{ id: 's', name: 'S' }] })
  expect(shown).not.toHaveProperty('a2a')
})

test('A20 - web pages read A2A-Extensions of answers, and the keys from every origin', async () => {
  const origin = 'https://app.example'
  const { http } = await serve({ cors: { allowOrigins: [origin] } })
  await register(http.url, AGENT)
  const headersOf = async (path: string, from = origin) =>
    (await fetch(`${http.url}${path}`, { headers: { origin: from } })).headers
  const card = await headersOf(`/a2a/weather${CARD}`)
  expect(card.get('access-control-expose-headers')).toBe('MCP-Session-Id, MCP-Protocol-Version, A2A-Extensions')
  expect(card.get('vary')).toBe('Origin, A2A-Version')
  expect((await headersOf('/agents')).get('access-control-expose-headers')).toBe('MCP-Session-Id, MCP-Protocol-Version')
  for (const from of [origin, 'https://elsewhere.example']) {
    expect((await headersOf('/.well-known/jwks.json', from)).get('access-control-allow-origin')).toBe('*')
  }
})
