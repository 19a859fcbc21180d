/**
 * Loads packages one after another, and reports each: `node native-child.mjs ROOT NAME…`. Plain JavaScript, so that it
 * needs nothing but Node.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'

const [root, ...names] = process.argv.slice(2)
const require = createRequire(join(root, 'package.json'))
for (const name of names) {
	let problem = null
	try {
		require(name)
	} catch (error) {
		problem = String(error?.message ?? error).split('\n')[0]
	}
	// Reported before the next one is tried, which may end this process.
	await new Promise((resolve) => process.send({ name, problem }, resolve))
}
process.exit(0)
