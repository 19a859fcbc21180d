/** Whether the installed package opens the homes that earlier versions wrote. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { keptVersions, openHome } from '../homes/home.ts'
import { say } from './run.ts'
import { Refused } from './refused.ts'

/** Long enough for an upgrade on a busy machine. */
const LIMIT_MS = 120_000

/** Throws `Refused` if a home does not start, or if a request fails that the earlier version answered. */
export async function checkHomes(svc: string, version: string): Promise<void> {
	if (keptVersions.length === 0) throw new Refused('test/homes has no home of an earlier version; restore them')
	for (const from of keptVersions) {
		await checkHome(svc, from)
		say(`A home of ${from} opens in ${version}`)
	}
}

async function checkHome(svc: string, from: string): Promise<void> {
	const { folder, home, facts } = openHome(from)
	const env = {
		PATH: process.env.PATH,
		HOME: folder,
		SVC_HOME: home,
		SVC_PORT: '0',
		SVC_LEGACY_PORT: '0',
		SVC_LOG_LEVEL: 'error',
		// An unused address: the home's model and chats are unreachable.
		MODEL_URL: 'http://127.0.0.1:1/v1',
	}
	const gateway = spawn(process.execPath, [svc, 'start'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
	const ended = once(gateway, 'exit')
	let output = ''
	for (const stream of [gateway.stdout, gateway.stderr])
		stream.on('data', (data: Buffer) => (output = (output + data.toString()).slice(-16_384)))
	const timer = setTimeout(() => gateway.kill('SIGKILL'), LIMIT_MS)
	try {
		const listening = new Promise<boolean>((resolve) => {
			gateway.stdout.on('data', () => output.includes('listens at') && resolve(true))
		})
		const isUp = await Promise.race([listening, ended.then(() => false)])
		if (!isUp) throw new Refused(`a home of ${from} does not start:\n${output}`)
		const { url } = JSON.parse(readFileSync(join(home, 'run/gateway.json'), 'utf8')) as { url: string }
		for (const path of Object.keys(facts.reads)) {
			const { status } = await fetch(url + path)
			if (status !== 200) throw new Refused(`in a home of ${from}, GET ${path} returns ${status}`)
		}
		gateway.kill('SIGTERM')
		const [code] = (await ended) as [number | null]
		if (code !== 0) throw new Refused(`with a home of ${from} the gateway ends with exit code ${code}:\n${output}`)
	} finally {
		clearTimeout(timer)
		gateway.kill('SIGKILL')
		await ended
		rmSync(folder, { recursive: true, force: true })
	}
}
