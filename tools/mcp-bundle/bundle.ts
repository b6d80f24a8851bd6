import { readdirSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { basename, join } from 'node:path'

import { zipSync } from 'fflate'

export const ROOT = join(import.meta.dirname, '../..')

/** The folder of the commands. The program is its file `tls.ts` and its folder `mcp-bridge`: the bundle has them in one folder. */
const SOURCE = join(ROOT, 'packages/cli/src')

/** The source file of the bundle's program. */
const ENTRY = 'bundle-entry.ts'

const ICON = 'icon.png'

/** The oldest Node that runs the bridge: that of the hosts, which bring their own. */
const NODE = '>=20.0.0'

/** Returns the MCP bundle: a zip archive with a manifest and the bridge, without dependencies. */
export function bundle(product: Product): Buffer {
  return zip({
    'manifest.json': json(manifest(product)),
    'server/package.json': json({ type: 'module' }),
    ...program(),
    // The icon of the console, packages/console/src/page/public/signalbox.svg, in the form that hosts show.
    [ICON]: readFileSync(join(import.meta.dirname, ICON)),
    LICENSE: readFileSync(join(ROOT, 'LICENSE')),
  })
}

function program(): Files {
  const paths = [...readdirSync(join(SOURCE, 'mcp-bridge')).map((file) => join('mcp-bridge', file)), 'tls.ts']
  return Object.fromEntries(
    paths.toSorted().map((path) => {
      const file = basename(path)
      const source = stripTypeScriptTypes(readFileSync(join(SOURCE, path), 'utf8'))
      const code = source.replaceAll(/(from |import )'\.{1,2}\/([^'/]+)\.ts'/g, "$1'./$2.js'")
      const name = file === ENTRY ? 'index.js' : file.replace(/\.ts$/, '.js')
      return [`server/${name}`, Buffer.from(code)]
    }),
  )
}

/** The manifest of the bundle, in version 0.3 of its format. */
function manifest({ name, version, license, keywords, web }: Product): object {
  const { url, token } = SETTINGS
  return {
    manifest_version: '0.3',
    name,
    display_name: 'Signalbox',
    version,
    description: DESCRIPTION,
    icon: ICON,
    author: { name: 'Signalbox', url: web },
    repository: { type: 'git', url: web },
    homepage: web,
    documentation: `${web}/blob/main/docs/guides/mcp.md`,
    support: `${web}/issues`,
    license,
    keywords,
    server: {
      type: 'node',
      entry_point: 'server/index.js',
      mcp_config: {
        command: 'node',
        args: ['${__dirname}/server/index.js'],
        env: { SIGNALBOX_URL: '${user_config.url}', [token.variable]: '${user_config.token}' },
      },
    },
    // The server has the tools; its settings decide which.
    tools_generated: true,
    user_config: {
      url: { type: 'string', title: url.title, description: url.description, default: url.default, required: true },
      token: {
        type: 'string',
        title: token.title,
        description: token.description,
        default: '',
        sensitive: true,
        required: false,
      },
    },
    compatibility: { platforms: ['darwin', 'win32', 'linux'], runtimes: { node: NODE } },
  }
}

function json(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`)
}

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

/** The contents of files by their paths, with slashes, relative to the root of the archive. */
export type Files = Readonly<Record<string, Uint8Array>>

/** Returns the files as a zip archive. Equal files make equal archives. */
export function zip(files: Files): Buffer {
  // The first day that the format can express, and a file of Unix that everyone may read.
  const settings = { level: 9, mtime: new Date(1980, 0, 1), os: 3, attrs: 0o100644 * 0x10000 } as const
  return Buffer.from(zipSync(files, settings))
}
