/**
 * Installs the packages of package-lock.json. In plain JavaScript for Node 20 and newer, and without imports of packages, since
 * none may be installed yet.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, run, UNAVAILABLE } from '../../process/handover.mjs'
import { takeInstallLock } from './install-lock.mjs'

const lockFile = join(root, 'package-lock.json')
const windows = process.platform === 'win32'
const stamp = join(root, 'node_modules/.installed')

/**
 * Installs packages that are missing or out of date. `needs`: `run` leaves out development packages; `all` includes them.
 *
 * One process at a time installs. Packages of another version replace the installed ones only while no process runs from those.
 * Development packages can be added beside a running gateway, whose packages stay unchanged. If it cannot install, ends the
 * process with a message that says what to do.
 */
export async function install(needs) {
	// npm has installed the dependencies of an installed package.
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
			'package-lock.json names different packages than the installed ones, which cannot be replaced while they ' +
				`are in use by ${list.join(', ')}. Stop what uses them (kill ${users.map(({ pid }) => pid).join(' ')}), then run this again.`,
		)
	}
	// Keep development packages if they are installed.
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

/** Runs npm on its own Node. A process that npm started gets npm's file from the environment instead of PATH. `options`: as for `run`. */
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
