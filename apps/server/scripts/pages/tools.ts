import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

import { createConfig } from '../../src/config/load.ts'
import { startServer } from '../../src/server.ts'
import { table } from './markdown.ts'

type Tool = Awaited<ReturnType<Client['listTools']>>['tools'][number]

/** A part for each tool: its description and its arguments, as `tools/list` gives them to clients. */
export async function toolsReference(): Promise<string> {
  return (await listTools()).map(toolReference).join('\n\n')
}

/** Asks a server of its own, because its list is the one that clients see. */
async function listTools(): Promise<readonly Tool[]> {
  const path = mkdtempSync(join(tmpdir(), 'signalbox-docs-'))
  try {
    await using server = await startServer(
      createConfig({ http: { port: 0 }, api: { port: 0 }, store: { path }, log: { level: 'silent' } }),
    )
    const client = new Client({ name: 'docs', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${server.http.url}/mcp`)))
    const { tools } = await client.listTools()
    await client.close()
    return tools
  } finally {
    rmSync(path, { recursive: true })
  }
}

function toolReference({ name, description, inputSchema: { properties = {}, required = [] } }: Tool): string {
  const rows = Object.entries(properties).map(([argument, schema]) => [
    `\`${argument}\``,
    allowed(schema),
    required.includes(argument) ? 'required' : defaultText(schema),
    text(Reflect.get(schema, 'description')),
  ])
  const head = ['argument', 'allowed', 'default', 'meaning']
  return [`### \`${name}\``, wrapped(text(description)), table(head, rows)].join('\n\n')
}

/** Breaks a paragraph into lines of at most 100 characters. */
function wrapped(paragraph: string): string {
  const lines = ['']
  for (const word of paragraph.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line.length + word.length + 1 > 100) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines.join('\n')
}

/** Keeps Markdown from reading a `*` as the beginning of emphasis, and a `<` as the beginning of an element. */
function text(value: unknown): string {
  return String(value).replaceAll(/[*<]/g, String.raw`\$&`)
}

function defaultText(schema: object): string {
  const value: unknown = Reflect.get(schema, 'default')
  return value === undefined ? '' : `\`${JSON.stringify(value)}\``
}

function allowed(schema: object): string {
  const word = (key: string): unknown => Reflect.get(schema, key)
  const values: unknown = word('enum')
  if (Array.isArray(values)) return values.map((value) => `\`${String(value)}\``).join(', ')
  switch (word('type')) {
    case 'integer':
    case 'number':
      return range(word('minimum'), word('maximum'))
    case 'string':
      return 'text'
    case 'array':
      return 'list of texts'
    default:
      return String(word('type'))
  }
}

function range(minimum: unknown, maximum: unknown): string {
  if (minimum === undefined) return 'number'
  return maximum === undefined || maximum === Number.MAX_SAFE_INTEGER
    ? `${readable(minimum)} or more`
    : `${readable(minimum)} to ${readable(maximum)}`
}

function readable(value: unknown): string {
  return Number(value).toLocaleString('en-US')
}
