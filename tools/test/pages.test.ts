import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { expect, onTestFinished, test } from 'vitest'

import type { Block } from '../testing/pages.ts'
import { PageFolder, PageServer, PastedShell, ROOT, shown, startInProcess } from '../testing/pages.ts'

/** A page whose shell examples are pasted here, in order, against one server. */
interface Page {
  readonly page: string
  /** Blocks, by a text in them, that run until the page's end, such as an agent. */
  readonly background?: readonly string[]
  /** Files that the examples read: blocks of the page, by a text in them. */
  readonly files?: Readonly<Record<string, string>>
  /** JavaScript that is not run, by a text in it, with the reason. */
  readonly leftScripts?: Readonly<Record<string, string>>
  /** Runs before the first example. */
  readonly before?: string
}

const PAGES: readonly Page[] = [
  { page: 'docs/guides/command-line.md' },
  {
    page: 'docs/guides/agents.md',
    background: ['npx node examples/agent/agent.ts'],
    leftScripts: {
      verifyAgentCardSignature: 'it needs a server with a public name; agent-cards.test.ts verifies cards',
    },
  },
  { page: 'docs/reference/cloudevents.md' },
  { page: 'docs/reference/configuration.md' },
  { page: 'docs/reference/limits.md' },
  { page: 'docs/reference/metrics.md' },
  { page: 'docs/reference/tools.md' },
  { page: 'docs/reference/http.md', before: 'npx node examples/agent/agent.ts http://127.0.0.1:9090' },
  { page: 'docs/guides/requests.md' },
  { page: 'docs/guides/channel-settings.md' },
  { page: 'docs/guides/operations.md' },
  { page: 'docs/guides/console.md' },
  { page: 'docs/guides/security.md', files: { 'policy.yaml': 'rules:\n' } },
  { page: 'docs/guides/mcp.md' },
  { page: 'apps/server/README.md' },
]

/** Pages whose shell examples other tests run, or none can. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'README.md': 'tools/test/readme.test.ts',
  'docs/getting-started.md': 'tools/test/guides.test.ts',
  'docs/guides/send-and-receive.md': 'tools/test/guides.test.ts',
  'docs/guides/publish-and-subscribe.md': 'tools/test/guides.test.ts',
  'docs/reference/management.md': 'tools/test/management-page.test.ts',
  'examples/README.md': 'examples/test/*.test.ts run each program',
  'docs/guides/client.md': 'its one block installs a package',
  'docs/guides/telemetry.md': 'its one block starts the server; tests of traces start it so',
  'docs/contributing.md': 'they are the checks of this repository',
  'docs/releasing.md': 'they publish packages',
}

interface PastedBlock extends Block {
  /** The block that shows the answer: it follows the command without text in between. */
  readonly answer: string | undefined
}

/** Matches the answer of an example whose page shows none. */
const ANYTHING = /^/

function shellBlocks(page: string): readonly PastedBlock[] {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const pattern = /^```sh\n(.*?)^```\n(?:\n```(?:json|text)\n(.*?)^```$)?/gms
  return [...text.matchAll(pattern)].map(([, command = '', answer]) => ({ language: 'sh', text: command, answer }))
}

function fencedBlocks(page: string, language: string): readonly string[] {
  const text = readFileSync(join(ROOT, page), 'utf8')
  return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, found, block = '']) =>
    found === language ? [block] : [],
  )
}

test.each(PAGES)('docs - the examples of $page run as pasted, and print the documented answers', async (entry) => {
  const { page, background = [], files = {}, leftScripts = {}, before } = entry
  const server = await PageServer.start(startInProcess)
  onTestFinished(() => server[Symbol.asyncDispose]())
  const folder = new PageFolder(server)
  onTestFinished(() => folder[Symbol.dispose]())
  for (const [name, part] of Object.entries(files)) {
    const block = fencedBlocks(page, 'yaml').find((text) => text.includes(part))
    writeFileSync(join(folder.work, name), block ?? '')
  }
  if (before !== undefined) await startInBackground(server.here(before), folder)
  const shell = new PastedShell(folder)
  onTestFinished(() => shell[Symbol.asyncDispose]())
  for (const block of shellBlocks(page)) {
    if (background.some((part) => block.text.includes(part))) {
      await startInBackground(server.here(block.text), folder)
      continue
    }
    const printed = await shell.paste(server.here(folder.here(block.text)))
    const answer = block.answer === undefined ? ANYTHING : shown(server.here(block.answer))
    expect(printed, block.text).toMatch(answer)
  }
  for (const script of fencedBlocks(page, 'js')) {
    if (!Object.keys(leftScripts).some((part) => script.includes(part))) await runScript(server.here(script))
  }
})

/** Runs a program of a page in the workspace, whose packages it imports. */
async function runScript(text: string): Promise<void> {
  const file = join(ROOT, 'tools', `page-script-${process.pid}-${Math.random().toString(36).slice(2)}.mjs`)
  onTestFinished(() => rmSync(file))
  writeFileSync(file, `${text}\nprocess.exit(0)\n`)
  await promisify(execFile)(process.execPath, [file])
}

/** Starts a command that does not end, until the test does. Resolves with its first output. */
async function startInBackground(command: string, { options }: PageFolder): Promise<void> {
  // A process group of its own: npx starts the program as a child.
  const child = spawn('bash', ['-c', command], { ...options, detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    const ended = once(child, 'close')
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    await ended
  })
  await once(child.stdout, 'data')
}

test('docs - every page with shell examples is pasted by a test', () => {
  const all = globSync(['README.md', 'docs/**/*.md', 'apps/*/README.md', 'examples/README.md'], { cwd: ROOT })
  const pages = all.filter((page) => shellBlocks(page).length > 0).toSorted()
  expect([...PAGES.map(({ page }) => page), ...Object.keys(ELSEWHERE)].toSorted()).toEqual(pages)
})
