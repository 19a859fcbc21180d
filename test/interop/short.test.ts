/** The clients that are among the gateway's own dependencies. `npm run interop` tests all clients. */
import t from 'tap'
import { openTarget } from './target.ts'
import type { Client } from './table.ts'

const load = async (path: string): Promise<unknown> => import(String(new URL(path, import.meta.url)))
const { createGateway } = (await load('../../core/client/index.ts')) as { createGateway: unknown }
const target = await openTarget(createGateway)
t.teardown(() => target[Symbol.asyncDispose]())
t.jobs = 4

for (const file of ['openai', 'mcp-sdk', 'own']) {
	const { name, features } = (await load(`clients/${file}.mjs`)) as Client
	for (const [feature, work] of Object.entries(features))
		void t.test(`${name}: ${feature}`, async (t) => t.equal(await work(target), undefined))
}
