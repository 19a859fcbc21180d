/** The home folder: who owns its files, whether it is writable, and its kind of disk. */
import { constants } from 'node:fs'
import { access, readdir, realpath, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { homeFolders, noFolder } from '../../../../config/first-start.ts'
import { error, note, ok } from '../contract.ts'
import type { Check } from '../contract.ts'
import { quoted } from '../../../util/quoted.ts'
import { MOST_KEYS, statOf } from '../stat-of.ts'

export const homeChecks: Check[] = [
	{
		id: 'home.owner',
		about: 'who owns the files',
		async run({ home }) {
			const owner = (await statOf(await realpath(home).catch(() => home)))?.uid
			const self = process.getuid?.()
			if (owner === undefined || self === undefined) return []
			const belongs = `${home} belongs to the user with the id ${owner}, but this user has the id ${self}`
			const remedy = `run svc as its owner, or give it to this user: sudo chown -R ${self} ${quoted(home)}`
			if (owner !== self && self !== 0) return error(belongs, remedy)
			const strangers: string[] = []
			for (const part of await partsOf(home)) {
				const uid = (await statOf(join(home, part)))?.uid
				if (uid !== undefined && uid !== owner) strangers.push(`${part} (user id ${uid})`)
			}
			if (strangers.length > 0)
				return error(
					`parts of the home belong to another user: ${strangers.join(', ')}`,
					`give all of it to one user: sudo chown -R ${owner} ${quoted(home)}`,
				)
			return owner === self ? ok('all of the home belongs to one user') : note(belongs, remedy)
		},
	},
	{
		id: 'home.writable',
		about: 'whether the home has its folders, and is writable',
		async run(context) {
			const { home } = context
			if (!(await statOf(home))) return []
			const store = await context.config().then(
				({ store: { path } }) => path,
				() => home,
			)
			const written = [home, join(home, 'run'), store]
			for (const folder of new Set([home, ...homeFolders.map((name) => join(home, name)), store])) {
				const problem = noFolder(folder)
				if (problem) return error(`${folder} ${problem.what}`, problem.fix)
				if (!written.includes(folder) || !(await statOf(folder))) continue
				try {
					await access(folder, constants.W_OK | constants.X_OK)
				} catch {
					return error(
						`this user cannot write to ${folder}`,
						'give the folder to the user that runs the gateway, or mount its disk for writing',
					)
				}
			}
			return ok('the home is writable')
		},
	},
	{
		id: 'home.network',
		about: 'the kind of disk',
		async run(context) {
			const paths = await context.config().then(
				({ store }) => [store.path, context.home],
				() => [context.home],
			)
			for (const path of paths) {
				const found = await statfs(path).catch(() => undefined)
				const kind = found && networkKinds[found.type]
				if (kind)
					return note(
						`${path} is on a network file system (${kind}), where the database can be damaged by a lost connection`,
						'keep the home on a disk of this machine: set SVC_HOME, or store.path in gateway.yaml',
					)
			}
			return ok('the home is on a disk of this machine')
		},
	},
]

/** Magic numbers of statfs(2). */
const networkKinds: Record<number, string> = {
	0x6969: 'NFS',
	0x517b: 'SMB',
	0xfe534d42: 'SMB',
	0xff534d42: 'CIFS',
	0x01021997: '9p',
	0x00c36400: 'Ceph',
	0x5346414f: 'AFS',
	0x0bd00bd0: 'Lustre',
	0x65735546: 'FUSE',
}

const PARTS = [
	'config',
	'config/gateway.yaml',
	'data',
	'data/data.mdb',
	'data/lock.mdb',
	'keys',
	'run',
	'run/gateway.lock',
	'plugins',
	'skills',
]

async function partsOf(home: string): Promise<string[]> {
	const keys = await readdir(join(home, 'keys')).catch(() => [])
	return [...PARTS, ...keys.slice(0, MOST_KEYS).map((name) => `keys/${name}`)]
}
