/**
 * Installs what package-lock.json names. In plain JavaScript for any Node from 20 on, and without packages: there may be
 * none yet.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, run } from '../../process/handover.mjs'
import { takeInstallLock } from './install-lock.mjs'

const lockFile = join(root, 'package-lock.json')
const windows = process.platform === 'win32'
const stamp = join(root, 'node_modules/.installed')
/** EX_UNAVAILABLE, as when the gateway cannot start. */
const UNAVAILABLE = 69

/**
 * Installs what is missing or out of date. `needs`: `run` leaves out what only development needs; `all` serves both.
 *
 * One process at a time installs. Packages of another version replace the installed ones only while no process runs from those.
 * What only development needs is added beside a running gateway, whose packages stay as they are. Ends the process where
 * it cannot install, with a message that says what to do.
 */
export async function install(needs) {
	// An installed package comes with what it needs.
	if (!existsSync(lockFile)) return
	const lockHash = createHash('sha256').update(readFileSync(lockFile)).digest('hex')
	if (isCurrent(lockHash, needs)) return
	const lock = await takeLock()
	// The previous holder may have installed the same packages.
	if (!isCurrent(lockHash, needs)) await installNow(lockHash, needs, lock)
	lock.release()
}

async function installNow(lockHash, needs, lock) {
	const { packageUsers } = await import('./package-users.mjs')
	const isAddition = isCurrent(lockHash, 'run')
	const users = isAddition ? [] : packageUsers(root)
	if (users.length > 0) {
		const list = users.map(({ pid, script }) => `process ${pid} (${script})`)
		fail(
			'package-lock.json names other packages than the installed ones, which cannot be replaced while they ' +
				`are in use by ${list.join(', ')}. Stop what uses them (kill ${users.map(({ pid }) => pid).join(' ')}), then run this again.`,
		)
	}
	// Packages for development stay if they are installed.
	if (existsSync(join(root, 'node_modules/tap'))) needs = 'all'
	process.stderr.write(`Installing packages ${needs === 'all' ? '' : '(first start only) '}…\n`)
	// Until all packages are installed, no process may treat them as complete.
	if (!isAddition) rmSync(stamp, { force: true })
	// `npm ci` begins by removing all packages; `npm install` adds to them.
	const verb = isAddition ? ['install', '--no-save'] : ['ci']
	const args = [...verb, '--ignore-scripts', '--loglevel=error', ...(needs === 'run' ? ['--omit=dev'] : [])]
	// Standard output belongs to the answer of a command. If this process is killed, npm continues installing.
	const code = await npm(args, { stdout: 2, started: (pid) => lock.add(pid) })
	if (code !== 0) fail('The packages could not be installed; see above. Is the npm registry reachable?', code)
	// Written as a whole, and never through a hard link of a copied clone.
	writeFileSync(`${stamp}.new`, `${lockHash} ${needs}`)
	renameSync(`${stamp}.new`, stamp)
}

/** Runs npm on the Node that it came with; under npm its own file is known, which saves a search of PATH. `options`: as for `run`. */
export function npm(args, options) {
	const { npm_execpath: file, npm_node_execpath: node = process.execPath } = process.env
	return file ? run(node, [file, ...args], options) : run(windows ? 'npm.cmd' : 'npm', args, options)
}

function isCurrent(lockHash, needs) {
	let have = ''
	try {
		have = readFileSync(stamp, 'utf8')
	} catch {
		// Nothing is installed, or another process is about to install.
	}
	return have === `${lockHash} all` || have === `${lockHash} ${needs}`
}

async function takeLock() {
	try {
		return await takeInstallLock()
	} catch (error) {
		const denied = ['EACCES', 'EPERM', 'EROFS'].includes(error.code)
		const advice = denied ? `run "node core/svc.mjs --version" once in ${root} as a user who may write there` : ''
		fail(`The packages are out of date and cannot be installed: ${error.message}${advice && `; ${advice}`}`)
	}
}

function fail(message, code = UNAVAILABLE) {
	process.stderr.write(`${message}\n`)
	process.exit(code)
}
