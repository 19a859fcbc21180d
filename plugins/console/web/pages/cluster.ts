import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { get } from '../api.ts'
import { Page, status, table } from '../page.ts'

interface Cluster {
	in_cluster: boolean
	data_format: number
	servers: string[]
	leader: string | null
	gateways: { name: string; version: string; format: number; works: boolean; threads: number; runs: number }[]
}

/** The gateways and servers of a cluster. */
class ClusterPage extends Page {
	#cluster: Cluster | undefined

	async enter(): Promise<void> {
		this.#cluster = await get<Cluster>('/v1/cluster', this.signal)
	}

	protected content(): TemplateResult {
		if (!this.#cluster) return html`<h1>Cluster</h1>`
		const { in_cluster, data_format, servers, leader, gateways } = this.#cluster
		const isBehind = gateways.every(({ format }) => format > data_format)
		return html`
			<h1>Cluster</h1>
			${
				in_cluster
					? html`<p>
							<button @click=${() => this.attempt(() => this.enter())}>Refresh</button>
						</p>`
					: html`<p class="note">
							This gateway stores its data in its own folder. With <code>store.url</code>, it stores its data in a NATS
							JetStream cluster, so that other gateways can take over.
						</p>`
			}
			<section>
				<h2>Gateways</h2>
				${table(
					['Gateway', 'State', 'Version', 'Reads formats up to', 'Threads', 'Runs'],
					gateways.map(({ name, version, format, works, threads, runs }) => [
						name,
						status(works ? 'working' : 'waiting'),
						version,
						format,
						threads,
						runs,
					]),
				)}
				<p class="note">
					A waiting gateway lends its threads to the working one. The data has format ${data_format}.
					${isBehind ? html`All gateways can read a newer one: <code>store.format</code> raises it.` : nothing}
				</p>
			</section>
			${
				in_cluster
					? html`<section>
							<h2>Servers</h2>
							<ul class="checks">
								${servers.map((server) => html`<li class="good">${server}</li>`)}
							</ul>
							<p class=${leader === null ? 'problem' : 'note'}>
								${leader === null ? 'No server accepts writes: the cluster has no leader.' : `${leader} is the leader, which accepts writes.`}
							</p>
						</section>`
					: nothing
			}
		`
	}
}

customElements.define('svc-cluster', ClusterPage)
