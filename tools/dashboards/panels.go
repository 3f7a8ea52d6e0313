package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// datasource returns the data source that the user selects at the top of the dashboard.
func datasource() common.DataSourceRef {
	kind, uid := "prometheus", "${datasource}"
	return common.DataSourceRef{Type: &kind, Uid: &uid}
}

// start returns a dashboard with the settings that all dashboards share.
func start(uid, title, description string) *dashboard.DashboardBuilder {
	return dashboard.NewDashboardBuilder(title).
		Uid(uid).
		Description(description).
		Tags([]string{"drover", "kubernetes"}).
		Refresh("30s").
		Time("now-6h", "now").
		Timezone(common.TimeZoneBrowser).
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Link(dashboard.NewDashboardLinkBuilder("Drover").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{"drover"}).AsDropdown(true).IncludeVars(true).KeepTime(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"))
}

// variable returns a variable with the values of a label of drover_machines.
func variable(name, label, selector string) *dashboard.QueryVariableBuilder {
	query := "label_values(drover_machines" + selector + ", " + name + ")"
	return dashboard.NewQueryVariableBuilder(name).
		Label(label).
		Datasource(datasource()).
		Query(dashboard.StringOrMap{String: &query}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalAsc)
}

func query(expr, legend string) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(expr).LegendFormat(legend).Range()
}

func instant(expr, legend string) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(expr).LegendFormat(legend).Instant()
}

// number shows the current value. If bad is true, it is red from 1.
func number(title, description, expr string, bad bool) *stat.PanelBuilder {
	steps := []dashboard.Threshold{{Color: "green"}}
	if bad {
		one := 1.0
		steps = append(steps, dashboard.Threshold{Value: &one, Color: "red"})
	}
	return stat.NewPanelBuilder().
		Title(title).Description(description).
		Datasource(datasource()).
		WithTarget(instant(expr, "")).
		Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)).
		ColorMode(common.BigValueColorModeBackground).
		GraphMode(common.BigValueGraphModeNone).
		NoValue("0").
		Height(4).Span(3)
}

// graph shows series over time, one per query.
func graph(title, description, unit string, queries ...*prometheus.DataqueryBuilder) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().
		Title(title).Description(description).
		Datasource(datasource()).
		Unit(unit).
		Min(0).
		LineWidth(1).
		FillOpacity(10).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeTable).Placement(common.LegendPlacementRight).ShowLegend(true).Calcs([]string{"lastNotNull", "max"})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Height(8).Span(12)
	for _, q := range queries {
		p = p.WithTarget(q)
	}
	return p
}

// stacked returns a stacked graph, for parts of a whole.
func stacked(title, description, unit string, queries ...*prometheus.DataqueryBuilder) *timeseries.PanelBuilder {
	return graph(title, description, unit, queries...).
		FillOpacity(60).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
}

// states shows states over time: a bar per series while its value is above zero.
func states(title, description string, queries ...*prometheus.DataqueryBuilder) *statetimeline.PanelBuilder {
	one := 1.0
	p := statetimeline.NewPanelBuilder().
		Title(title).Description(description).
		Datasource(datasource()).
		NoValue("none").
		Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps([]dashboard.Threshold{{Color: "transparent"}, {Value: &one, Color: "orange"}})).
		ShowValue(common.VisibilityModeNever).
		Height(8).Span(12)
	for _, q := range queries {
		p = p.WithTarget(q)
	}
	return p
}
