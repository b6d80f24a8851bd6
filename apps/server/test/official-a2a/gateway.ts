import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { afterAll, beforeAll } from 'vitest'

import type { PartialConfig } from '../../src/config/load.ts'
import { createConfig } from '../../src/config/load.ts'
import { startServer } from '../../src/server.ts'
import { register } from '../support/agent.ts'
import type { AgentName, OfficialAgents } from './agents/process.ts'
import { startOfficialAgents } from './agents/process.ts'

/** A server in this process for all tests of a file. */
export interface Gateway {
  readonly http: string
  readonly api: string
  [Symbol.asyncDispose]: () => Promise<void>
}

export async function startGateway(partial: PartialConfig = {}): Promise<Gateway> {
  const folder = await TemporaryFolder.create('official-a2a')
  const config = createConfig({
    log: { level: 'silent' },
    shutdownSeconds: 1,
    ...partial,
    http: { port: 0 },
    api: { port: 0 },
    store: { path: folder.path },
  })
  const server = await startServer(config)
  return {
    http: server.http.url,
    api: server.api.url,
    [Symbol.asyncDispose]: async () => {
      await server.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

interface Official {
  readonly agents: OfficialAgents
  readonly gateway: Gateway
}

/** Starts the official agents and a gateway for all tests of the file that calls this. */
export function beforeOfficial(prepare: (started: Official) => void | Promise<void>): void {
  const held = new AsyncDisposableStack()
  beforeAll(async () => {
    const [agents, gateway] = await Promise.all([startOfficialAgents(), startGateway()])
    held.use(agents)
    held.use(gateway)
    await prepare({ agents, gateway })
  })
  afterAll(() => held.disposeAsync())
}

/** Registers an agent with the card that it serves itself, under its own name. */
export async function registerOfficial(http: string, agents: OfficialAgents, agent: AgentName): Promise<void> {
  const url = agents.url(agent)
  const response = await fetch(`${url}.well-known/agent-card.json`)
  const card = (await response.json()) as object
  await register(http, { ...card, agent_id: agent, url })
}

/** All that a client of an agent needs to know. */
export function gatewayUrl(http: string, agent: string): string {
  return `${http}/a2a/${agent}/`
}

/** The sum of a counter over its label sets that have this agent. */
export async function counted(api: string, counter: string, agent: string): Promise<number> {
  const page = await (await fetch(`${api}/metrics`)).text()
  return page
    .split('\n')
    .filter((line) => line.startsWith(`${counter}{`) && line.includes(`agent_id="${agent}"`))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
