/** A process that copies a data folder into an empty one while the gateway writes to it: `node copy-child.ts FROM TO`. */
import { openEnv } from './env.ts'
import { copyInto } from './snapshots.ts'

// The parent has ended.
process.on('disconnect', () => process.exit(1))
const [from = '', to = ''] = process.argv.slice(2)
const env = openEnv(from, { readOnly: true })
await copyInto(env.root, to)
await env.root.close()
process.exit(0)
