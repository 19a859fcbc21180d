/**
 * The bundle: the gateway's code in a few files of JavaScript, which start in half the time that its sources need. In
 * plain JavaScript, see install.mjs.
 *
 * `dist/current.json` names the bundle's folder and what it was made from. A bundle is used only while all of that has the
 * same content; else it is made again, from the sources. So whoever edits a source, or gets another version, never runs
 * stale code.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from '../../process/handover.mjs'
import { takeInstallLock } from './install-lock.mjs'

const dist = join(root, 'dist')
const current = join(dist, 'current.json')
/** Bundles that are kept besides those that run: a process that starts now may have chosen the last one. */
const KEPT = 2

/**
 * The file to run for a program, such as `core/main.ts`: in the bundle, which is made first where it is missing or stale.
 * The source itself where that fails, after a line on standard error that says why.
 */
export async function runnable(program) {
	const folder = freshBundle() ?? (await bundleNow())
	return folder === undefined ? join(root, program) : join(folder, fileOf(program))
}

/** The file of a program below the bundle's folder. */
export function fileOf(program) {
	return `${program.replace(/\.ts$/, '').replaceAll('/', '-')}.js`
}

/** Makes the bundle if it is missing or stale, and returns its folder. Throws where that fails. */
async function makeBundle() {
	const lock = await takeInstallLock()
	try {
		// The previous holder may have made it.
		const made = freshBundle()
		if (made !== undefined) return made
		const folder = `${process.pid}-${Date.now().toString(36)}`
		mkdirSync(dist, { recursive: true })
		const sources = await build(join(dist, folder))
		publish({ folder, packages: packagesNow(), digest: digestOf(sources), ...sources, states: statesOf(sources) })
		await removeOldBundles()
		return join(dist, folder)
	} finally {
		lock.release()
	}
}

/** In a process of its own: esbuild's would stay until this one ends, and this one may become the gateway. */
async function build(folder) {
	const maker = fileURLToPath(new URL('./make-bundle.mjs', import.meta.url))
	// Loaded here, since most starts make no bundle.
	const { execFile } = await import('node:child_process')
	const { promisify } = await import('node:util')
	try {
		return JSON.parse((await promisify(execFile)(process.execPath, [maker, folder])).stdout)
	} catch (error) {
		rmSync(folder, { recursive: true, force: true })
		throw new Error(/^.*Error.*?: (.*)$/m.exec(error.stderr)?.[1] ?? error.message, { cause: error })
	}
}

async function bundleNow() {
	try {
		return await makeBundle()
	} catch (error) {
		const [reason] = String(error?.message ?? error).split('\n')
		// Node strips no types there.
		if (/[\\/]node_modules[\\/]/.test(root)) {
			process.stderr.write(
				`The gateway cannot be started: this package has no bundle, and none can be made: ${reason}\n`,
			)
			process.exit(69)
		}
		process.stderr.write(
			`The gateway runs from its sources, which start more slowly: no bundle can be made: ${reason}\n`,
		)
		return undefined
	}
}

/** Undefined if there is none, or if it was made from something else. */
function freshBundle() {
	try {
		const bundle = JSON.parse(readFileSync(current, 'utf8'))
		const folder = join(dist, bundle.folder)
		if (!existsSync(folder) || bundle.packages !== (packagesNow() ?? bundle.packages)) return undefined
		const states = statesOf(bundle)
		if (states === bundle.states) return folder
		if (digestOf(bundle) !== bundle.digest) return undefined
		try {
			publish({ ...bundle, states })
		} catch {
			// This user may not write there. Then the next start reads the sources again.
		}
		return folder
	} catch {
		return undefined // there is none, or a source is gone
	}
}

/** The digest of the lock file that is installed, see install.mjs. Undefined in an installed package, which has none. */
function packagesNow() {
	const stamp = join(root, 'node_modules/.installed')
	return existsSync(stamp) ? readFileSync(stamp, 'utf8').split(' ')[0] : undefined
}

/** What a change of the sources changes, without reading them: nobody can set the time of a file's last change. */
function statesOf({ files, folders }) {
	const states = [...files, ...folders].map((path) => {
		// Not by `join`, which takes as long as stat: each start does this a thousand times.
		const { size, mtimeMs, ctimeMs } = statSync(root + path)
		return `${size} ${mtimeMs} ${ctimeMs}`
	})
	return states.join('\n')
}

/** Of the content of the files, and the names in the folders: a new file there is a new part of a plugin. */
function digestOf({ files, folders }) {
	const hash = createHash('sha256')
	for (const path of files)
		hash
			.update(`${path}\0`)
			.update(readFileSync(join(root, path)))
			.update('\0')
	for (const path of folders) hash.update(`${path}\0${readdirSync(join(root, path)).toSorted().join('\0')}\0`)
	return hash.digest('hex')
}

function publish(bundle) {
	const file = `${current}.${process.pid}`
	writeFileSync(file, JSON.stringify(bundle))
	renameSync(file, current)
}

/** Removes bundles from which nothing runs, but the newest. */
async function removeOldBundles() {
	const { commandLines } = await import('./package-users.mjs')
	const lines = commandLines()
	const all = readdirSync(dist, { withFileTypes: true })
		.filter((one) => one.isDirectory() && /^\d+-/.test(one.name))
		.map(({ name }) => ({ name, made: statSync(join(dist, name)).mtimeMs }))
		.toSorted((a, b) => b.made - a.made)
	for (const { name } of all.slice(KEPT))
		if (!lines.some((args) => args.some((arg) => arg.includes(join(dist, name)))))
			rmSync(join(dist, name), { recursive: true, force: true })
}
