// Starts the server from source. Plain JavaScript: to remove types, Node loads a WebAssembly module in each thread whose
// first file has types, which takes a tenth of a start. This file makes Node find all files in its cache, without their
// types; the variable does so for the writer thread. Tests bundle the source once, and name the bundle (source-bundle.ts).
import module from 'node:module'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../../../node_modules/.cache/signalbox', import.meta.url))
module.enableCompileCache?.(process.env.NODE_COMPILE_CACHE)
await import(process.env.SOURCE_BUNDLE ?? '../src/main.ts')
