/** What the tests of plugins import as `svc-gateway/testing`: test/contracts/testing.ts, from the bundle, since Node strips no types below node_modules. */
import { pathToFileURL } from 'node:url'
import { runnable } from './cli/launch/bundle.mjs'

const file = await runnable('test/contracts/testing.ts')
export const { checkChannel, startPlugin } = await import(pathToFileURL(file).href)
