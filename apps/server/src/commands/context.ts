import { resolve } from 'node:path'

import { ServerError } from '../errors.ts'
import type { CommandCall } from './command.ts'
import type { CommandIo } from './command-io.ts'
import { checkedUrl } from './connection.ts'
import type { Context, Contexts } from './contexts.ts'
import { contextsFile, readContexts, writeContexts } from './contexts.ts'
import type { ExitCode } from './exit-codes.ts'
import { EXIT } from './exit-codes.ts'
import { table } from './style.ts'

/** `signalbox context add`: saves a server under a name. */
export async function contextAddCommand(call: CommandCall): Promise<void> {
  const { line, io } = call
  const name = line.word(0)
  if (!/^[\w.-]{1,64}$/.test(name)) throw line.invalid('NAME', name, '1 to 64 letters, digits, and . _ -')
  const api = line.value('api')
  const tokenFile = line.value('token-file')
  if (tokenFile !== undefined && line.has('token'))
    throw line.invalid('--token-file', tokenFile, 'either --token or --token-file')
  const [caFile, certFile, keyFile] = ['ca-file', 'cert-file', 'key-file'].map((option) => line.value(option))
  const token = line.value('token') === '-' ? await firstLine(io) : line.value('token')
  const context: Context = {
    url: checkedUrl('--url', line.option('url')),
    ...(api === undefined ? {} : { api: checkedUrl('--api', api) }),
    ...(token === undefined ? {} : { token }),
    ...(tokenFile === undefined ? {} : { tokenFile: resolve(tokenFile) }),
    ...(caFile === undefined ? {} : { caFile: resolve(caFile) }),
    ...(certFile === undefined ? {} : { certFile: resolve(certFile) }),
    ...(keyFile === undefined ? {} : { keyFile: resolve(keyFile) }),
  }
  const { current, byName } = readContexts(io)
  writeContexts(io, { current: current ?? name, byName: new Map([...byName, [name, context]]) })
  await answer(
    call,
    { name, file: contextsFile(io), current: (current ?? name) === name },
    `${name} is saved in ${contextsFile(io)}`,
  )
}

/** `signalbox context use`: makes a context the current one. */
export async function contextUseCommand(call: CommandCall): Promise<void> {
  const { line, io } = call
  const { byName } = contextsWith(call)
  writeContexts(io, { current: line.word(0), byName })
  await answer(call, { name: line.word(0), current: true }, `${line.word(0)} is the current context`)
}

/** `signalbox context rm`: removes a context. */
export async function contextRemoveCommand(call: CommandCall): Promise<void> {
  const { line, io } = call
  const { current, byName } = contextsWith(call)
  const left = new Map(byName)
  left.delete(line.word(0))
  writeContexts(io, { current: current === line.word(0) ? undefined : current, byName: left })
  await answer(call, { name: line.word(0), removed: true }, `${line.word(0)} is removed`)
}

/** `signalbox context ls`: lists the contexts. The current one has a star. */
export async function contextListCommand({ line, io }: CommandCall): Promise<ExitCode> {
  const { current, byName } = readContexts(io)
  const contexts = [...byName]
  if (line.has('json')) {
    for (const [name, { url, api, token, tokenFile }] of contexts) {
      const shape = { name, url, api, has_token: token !== undefined, token_file: tokenFile, current: name === current }
      await io.stdout.write(`${JSON.stringify(shape)}\n`)
    }
  } else {
    const rows = contexts.map(([name, { url, api = '', token, tokenFile }]) => [
      `${name === current ? '*' : ' '} ${name}`,
      url,
      api,
      token === undefined ? (tokenFile ?? '') : 'token',
    ])
    for (const row of table(rows)) await io.stdout.write(`${row}\n`)
  }
  return contexts.length === 0 ? EXIT.NOTHING : EXIT.OK
}

function contextsWith({ line, io }: CommandCall): Contexts {
  const contexts = readContexts(io)
  if (contexts.byName.has(line.word(0))) return contexts
  const known = [...contexts.byName.keys()].join(', ')
  throw new ServerError('CONFIG_INVALID', [
    `${line.command}: there is no context ${JSON.stringify(line.word(0))}; ${known === '' ? 'add one with signalbox context add' : `allowed are ${known}`}`,
  ])
}

async function answer({ line, io }: CommandCall, json: object, text: string): Promise<void> {
  await io.stdout.write(`${line.has('json') ? JSON.stringify(json) : text}\n`)
}

async function firstLine({ stdin }: CommandIo): Promise<string> {
  let text = ''
  for await (const chunk of stdin) text += Buffer.from(chunk).toString()
  return text.trim()
}
