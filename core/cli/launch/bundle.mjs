/**
 * The bundle: the gateway's code in a few files of JavaScript, which start in half the time of its sources. In plain JavaScript,
 * see install.mjs.
 *
 * `dist/current.json` names the bundle's folder and its sources. A bundle is used only while the sources are unchanged, and
 * rebuilt otherwise, so that nobody runs stale code after an edit or an update.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root, UNAVAILABLE } from '../../process/handover.mjs'
import { takeInstallLock } from './install-lock.mjs'

const dist = join(root, 'dist')
const current = join(dist, 'current.json')
/** Bundles that are kept although no process runs from them: a process that is starting may have chosen the last one. */
const KEPT = 2

/**
 * The file to run for a program, such as `core/main.ts`: in the bundle, which is first built if it is missing or stale. If that
 * fails, the source, after a line with the reason on standard error.
 */
export async function runnable(program) {
	const folder = freshBundle() ?? (await bundleNow())
	return folder === undefined ? join(root, program) : join(folder, fileOf(program))
}

/** The file of a program below the bundle's folder. */
export function fileOf(program) {
	return `${program.replace(/\.ts$/, '').replaceAll('/', '-')}.js`
}

/** Builds the bundle if it is missing or stale, and returns its folder. Throws if that fails. */
async function makeBundle() {
	const lock = await takeInstallLock()
	try {
		// The previous holder may have built it.
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

/** Runs in a separate process: esbuild's service stays until its process ends, and this one may become the gateway. */
async function build(folder) {
	const maker = fileURLToPath(new URL('./make-bundle.mjs', import.meta.url))
	// Loaded here, since most starts build no bundle.
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
		// Node strips no types below node_modules, so the sources cannot run.
		if (/[\\/]node_modules[\\/]/.test(root)) {
			process.stderr.write(
				`The gateway cannot be started: this package has no bundle, and none can be made: ${reason}\n`,
			)
			process.exit(UNAVAILABLE)
		}
		process.stderr.write(
			`The gateway runs from its sources, which start more slowly: no bundle can be made: ${reason}\n`,
		)
		return undefined
	}
}

/** The folder of the current bundle; undefined if there is none or its sources have changed. */
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
			// This user may not write there; the next start reads the sources again.
		}
		return folder
	} catch {
		return undefined // there is none, or a source was removed
	}
}

/** The digest of the installed lock file, see install.mjs. Undefined in an installed package, which has none. */
function packagesNow() {
	const stamp = join(root, 'node_modules/.installed')
	return existsSync(stamp) ? readFileSync(stamp, 'utf8').split(' ')[0] : undefined
}

/** Sizes and times that change with the sources, to avoid reading them: unlike mtime, no user can set ctime. */
function statesOf({ files, folders }) {
	const states = [...files, ...folders].map((path) => {
		// Each start does this a thousand times, and `join` would take as long as stat.
		const { size, mtimeMs, ctimeMs } = statSync(root + path)
		return `${size} ${mtimeMs} ${ctimeMs}`
	})
	return states.join('\n')
}

/** Covers the content of the files, and the names in the folders: a new file there may be a new part of a plugin. */
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

/** Removes bundles that no process runs from, except the newest. */
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
