import type { KeyObject } from 'node:crypto'
import { createPublicKey } from 'node:crypto'

import { watchFiles } from '../watched-files.ts'
import { keySetAlgorithms, publicKeyAlgorithms } from './algorithms.ts'
import { parseKeySet } from './key-set.ts'
import type { FindKey, KeyEvents, KeySource } from './key-source.ts'
import { secretIn, secretKey } from './secret.ts'

/** Returns the keys of a file. The file is read again when it changes. @throws Error for a file without keys */
function keyFile(
  file: string,
  parse: (text: string) => { find: FindKey; algorithms: readonly string[] },
  events: KeyEvents,
  lookMs?: number,
): KeySource {
  let version = 0
  const watched = watchFiles([file], {
    parse: ([text = '']) => {
      try {
        return parse(text)
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        throw new RangeError(`${JSON.stringify(file)}: ${reason}`, { cause: error })
      }
    },
    changed() {
      version++
      events.changed()
    },
    refused: ({ message }) => events.failed(message),
    lookMs,
  })
  return {
    get algorithms() {
      return watched.value.algorithms
    },
    get version() {
      return version
    },
    find: (header, token) => watched.value.find(header, token),
    [Symbol.dispose]: () => watched[Symbol.dispose](),
  }
}

/** Returns the keys of a file with a JSON Web Key Set. */
export function keySetFile(file: string, wanted: readonly string[], events: KeyEvents, lookMs?: number): KeySource {
  const algorithms = keySetAlgorithms(wanted)
  return keyFile(file, (text) => ({ find: parseKeySet(text), algorithms }), events, lookMs)
}

/** Returns the key of a file with one public key or certificate in PEM. */
export function publicKeyFile(file: string, wanted: readonly string[], events: KeyEvents, lookMs?: number): KeySource {
  return keyFile(
    file,
    (text) => {
      const key = parsePublicKey(text)
      const algorithms = publicKeyAlgorithms(key, wanted)
      return { find: async () => key, algorithms }
    },
    events,
    lookMs,
  )
}

/** Returns the secret of a file as a key. */
export function secretFile(file: string, wanted: readonly string[], events: KeyEvents, lookMs?: number): KeySource {
  return keyFile(file, (text) => secretKey(secretIn(text), wanted), events, lookMs)
}

function parsePublicKey(text: string): KeyObject {
  // A reader of the private key can make tokens, so the server must not have it.
  if (text.includes('PRIVATE KEY-----')) throw new Error('it contains a private key; allowed is the public key alone')
  try {
    return createPublicKey(text)
  } catch (error) {
    throw new Error('it contains no public key in PEM; allowed is -----BEGIN PUBLIC KEY----- or a certificate', {
      cause: error,
    })
  }
}
