/**
 * Loads packages one after another, and reports each: `node native-child.mjs ROOT NAME…`. Plain JavaScript, so that it
 * needs nothing but Node.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'

const [root, ...names] = process.argv.slice(2)
const require = createRequire(join(root, 'package.json'))
for (const name of names) {
	await report({ loading: name })
	let problem = null
	try {
		require(name)
	} catch (error) {
		problem = String(error?.message ?? error).split('\n')[0]
	}
	await report({ loaded: name, problem })
}
process.exit(0)

/** Settles once the message is sent: the next package may end this process. */
function report(message) {
	return new Promise((resolve) => process.send(message, resolve))
}
