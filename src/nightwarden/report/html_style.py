"""How the page looks: one column, light and dark, on a phone, on paper.

Read next: `html.py`.
"""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--ink:#1f2328;--soft:#59636e;--line:#d1d9e0;--ground:#ffffff;
--raised:#f6f8fa;--accent:#0969da;--good:#1a7f37;--warn:#9a6700;--bad:#cf222e;--calm:#59636e}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--line:#3d444d;
--ground:#0d1117;--raised:#161b22;--accent:#4493f8;--good:#3fb950;--warn:#d29922;--bad:#f85149;
--calm:#9198a1}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--ground);color:var(--ink);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
header,main,footer{max-width:72rem;margin:0 auto;padding:0 1rem}
header{padding-top:1.5rem}
h1{font-size:1.05rem;font-weight:600;margin:0;color:var(--soft);overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.25rem 0 .75rem;padding-bottom:.3rem;
border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:0 0 .5rem;overflow-wrap:anywhere}
p{margin:.5rem 0;max-width:60rem;overflow-wrap:anywhere}
.status{font-size:1.65rem;line-height:1.25;font-weight:650;margin:.35rem 0 .25rem}
.completed{color:var(--good)}.supervised,.suspended,.interrupted{color:var(--warn)}
.failed{color:var(--bad)}.cancelled,.unfinished{color:var(--calm)}.running{color:var(--accent)}
.headline{font-size:1.1rem}
.soft{color:var(--soft)}
.skip-link{position:absolute;left:-99rem}
.skip-link:focus{left:1rem;top:.5rem;background:var(--raised);padding:.4rem .8rem}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1rem;padding:0;margin:1rem 0 0;
font-size:.92rem}
a{color:var(--accent)}
dl{margin:.75rem 0;display:grid;gap:.3rem}
dl>div{display:grid;grid-template-columns:9rem minmax(0,1fr);gap:.75rem}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
.scroll{overflow-x:auto;margin:.75rem 0}
table{border-collapse:collapse;font-size:.92rem;min-width:min(100%,44rem)}
td:not(.number){min-width:6rem}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{padding:.35rem .9rem .35rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--line);font-weight:400;overflow-wrap:anywhere}
thead th{color:var(--soft);font-size:.85rem;white-space:nowrap}
tbody th{max-width:28rem}
tfoot th,tfoot td{font-weight:600;border-bottom:0}
.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
article{border:1px solid var(--line);border-left:.3rem solid var(--calm);border-radius:.4rem;
background:var(--raised);padding:.8rem 1rem;margin:.75rem 0}
article.retry{border-left-color:var(--accent)}article.substitute{border-left-color:var(--warn)}
article.fail{border-left-color:var(--bad)}
.tag{display:inline-block;border:1px solid var(--line);border-radius:1rem;padding:0 .6rem;
font-size:.85rem;margin-left:.4rem;white-space:nowrap}
details>summary{cursor:pointer;padding:.3rem 0;color:var(--accent)}
figure{margin:.75rem 0}
.fits svg{max-width:max(100%,44rem);height:auto}
figcaption{font-size:.92rem;color:var(--soft);margin-top:.4rem}
.plot text{fill:var(--ink);font:12px system-ui,sans-serif}.plot .soft{fill:var(--soft)}
.plot .busy{fill:var(--accent);opacity:.75}.plot .rule{stroke:var(--line)}
.plot .resume{stroke:var(--warn);stroke-dasharray:4 3;stroke-width:1.5}
.plot .mark{stroke:var(--ground);stroke-width:1;fill:var(--calm)}
.plot .mark.retry{fill:var(--accent)}.plot .mark.substitute{fill:var(--warn)}
.plot .mark.fail{fill:var(--bad)}
footer{color:var(--soft);font-size:.85rem;padding-top:2rem;padding-bottom:2rem}
@media (max-width:40rem){dl>div{grid-template-columns:1fr;gap:0}.status{font-size:1.35rem}
th,td{padding-right:.6rem}}
@media print{:root{color-scheme:light;--ink:#000;--soft:#444;--line:#bbb;--ground:#fff;
--raised:#fff;--accent:#04c;--good:#060;--warn:#740;--bad:#a00;--calm:#444}
nav,.skip-link{display:none}.scroll{overflow:visible}body{font-size:10pt}
header,main,footer{max-width:none}article,tr,figure{break-inside:avoid}h2,h3{break-after:avoid}
details::details-content{content-visibility:visible;height:auto}}
"""
