import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')

/** The parts of the server's package.json that the bundle and the registry entry repeat. */
export interface Product {
  readonly name: string
  readonly version: string
  /** The name in the MCP registry, which compares it with the published package. */
  readonly mcpName: string
  readonly license: string
  readonly keywords: readonly string[]
  /** The page of the repository. */
  readonly web: string
}

export function readProduct(): Product {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'apps/server/package.json'), 'utf8')) as Omit<Product, 'web'> & {
    readonly repository: { readonly url: string }
  }
  const { name, version, mcpName, license, keywords, repository } = manifest
  return { name, version, mcpName, license, keywords, web: repository.url.replace(/^git\+|\.git$/g, '') }
}

/** Has at most 100 characters, the limit of the registry. */
export const DESCRIPTION = 'Tools for a Signalbox message broker: queues, events, commands, queries and agents.'

/** The settings of the bridge, as the hosts ask their users for them. */
export const SETTINGS = {
  url: {
    title: 'Server URL',
    description: 'The MCP endpoint of the Signalbox server.',
    default: 'http://127.0.0.1:9090/mcp',
  },
  token: {
    title: 'Token',
    description: 'The bearer token of the server; empty if the server has no authentication.',
    variable: 'SIGNALBOX_TOKEN',
  },
} as const
