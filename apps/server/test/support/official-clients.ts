import { createMCPClient } from '@ai-sdk/mcp'
import type { VersionNegotiationMode } from '@modelcontextprotocol/client'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { onTestFinished } from 'vitest'

/** A tool result as the tests read it. */
export interface ClientResult {
  readonly text: string
  readonly isError: boolean
}

interface CallOptions {
  readonly signal?: AbortSignal
  readonly onprogress?: (progress: { readonly message?: string | undefined }) => void
}

/** An official client, connected to a server. */
export interface OfficialClient {
  /** The revision that the client speaks to the server. */
  readonly version: string | undefined
  readonly instructions: string | undefined
  tools(): Promise<readonly string[]>
  call(name: string, args: Record<string, unknown>, options?: CallOptions): Promise<ClientResult>
}

/** An official client by name, with the abilities that the tests need to know. */
export interface ClientKind {
  readonly name: string
  /** The revision that it speaks to this server. */
  readonly version: string
  /** `false` if the client cannot show progress. */
  readonly progress: boolean
  /** `false` if the client does not tell the server that a call is cancelled. */
  readonly cancels: boolean
  readonly connect: (url: string) => Promise<OfficialClient>
}

function read({ content, isError }: Readonly<Record<string, unknown>>): ClientResult {
  const [block] = Array.isArray(content) ? (content as readonly { readonly text?: unknown }[]) : []
  if (typeof block?.text !== 'string') throw new Error('the result has no text block')
  return { text: block.text, isError: isError === true }
}

const INFO = { name: 'test', version: '1.0.0' }

function second(name: string, version: string, mode: VersionNegotiationMode): ClientKind {
  return {
    name: `@modelcontextprotocol/client 2, ${name}`,
    version,
    progress: true,
    cancels: true,
    async connect(url) {
      const client = new Client(INFO, { versionNegotiation: { mode } })
      await client.connect(new StreamableHTTPClientTransport(new URL(url)))
      onTestFinished(() => client.close())
      return {
        version: client.getNegotiatedProtocolVersion(),
        instructions: client.getInstructions(),
        tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
        call: async (name, args, options) => read(await client.callTool({ name, arguments: args }, options)),
      }
    },
  }
}

const first: ClientKind = {
  name: '@modelcontextprotocol/sdk 1',
  version: '2025-11-25',
  progress: true,
  cancels: true,
  async connect(url) {
    const client = new FirstClient(INFO)
    const transport = new FirstTransport(new URL(url))
    await client.connect(transport)
    onTestFinished(() => client.close())
    return {
      version: transport.protocolVersion,
      instructions: client.getInstructions(),
      tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
      call: async (name, args, options) => read(await client.callTool({ name, arguments: args }, undefined, options)),
    }
  },
}

function aiSdk(name: string, version: string, discovery: boolean): ClientKind {
  return {
    name: `@ai-sdk/mcp 2, ${name}`,
    version,
    progress: false,
    cancels: discovery,
    async connect(url) {
      const transport = { type: 'http' as const, url }
      const client = await createMCPClient({ transport, protocolVersionDiscovery: discovery })
      onTestFinished(() => client.close())
      return {
        version: client.initializeResult.protocolVersion,
        instructions: client.instructions,
        tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
        call: async (name, args, { signal } = {}) =>
          read(await client.callTool({ name, arguments: args, options: signal === undefined ? {} : { signal } })),
      }
    },
  }
}

/** The official clients, in each of their modes. */
export const OFFICIAL_CLIENTS: readonly ClientKind[] = [
  second('legacy', '2025-11-25', 'legacy'),
  second('auto', '2026-07-28', 'auto'),
  second('pinned', '2026-07-28', { pin: '2026-07-28' }),
  first,
  aiSdk('with discovery', '2026-07-28', true),
  aiSdk('without discovery', '2025-11-25', false),
]
