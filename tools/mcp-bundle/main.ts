import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { commandLine, flag } from '@signalbox/testkit/command-line'

import { bundle, readProduct, ROOT } from './bundle.ts'
import type { RegistryEntry } from './check.ts'
import { answerWithoutServer, problemsOf, unpack } from './check.ts'
import { bundleName, serverJson } from './server-json.ts'

const { values } = commandLine(
  {
    usage: 'npm run bundle -- [options]',
    about: `Builds the MCP bundle and the entry for the MCP registry in the folder dist, and checks them: the manifest, the modules
of the program, the hash, and one run of the program. Exits with 1 if a check fails.`,
  },
  { check: flag('checks the files that are in dist, without building them') },
)
await main(values.check)

async function main(onlyCheck: boolean): Promise<void> {
  const product = readProduct()
  const folder = join(ROOT, 'dist')
  const archive = join(folder, bundleName(product.name, product.version))
  const entry = join(folder, 'server.json')
  if (!onlyCheck) {
    const content = bundle(product)
    mkdirSync(folder, { recursive: true })
    writeFileSync(archive, content)
    writeFileSync(entry, `${JSON.stringify(serverJson(product, content), null, 2)}\n`)
  }
  const content = readFileSync(archive)
  const problems = [...problemsOf(content, JSON.parse(readFileSync(entry, 'utf8')) as RegistryEntry)]
  const unpacked = mkdtempSync(join(tmpdir(), 'signalbox-bundle-'))
  try {
    const answer = await answerWithoutServer(unpack(content, unpacked))
    if (!answer.includes('"id":1,"error"')) problems.push(`the program answers ${JSON.stringify(answer)}`)
  } finally {
    rmSync(unpacked, { recursive: true })
  }
  for (const problem of problems) process.stderr.write(`bundle: ${problem}\n`)
  process.stdout.write(`bundle: ${archive}, ${content.length} bytes, ${problems.length} problems\n`)
  if (problems.length > 0) process.exitCode = 1
}
